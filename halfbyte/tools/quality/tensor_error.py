"""`TensorError`: how far a tensor is from the same one in another file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...formats import GGUFFile, TensorInfo
from ...model.backend import Progress

PIECE = 1 << 20
"""Weights decoded at a time: an embedding as float32 would be larger than its file."""


@dataclass(frozen=True)
class TensorError:
    """`error` is sum((b - a)^2) / sum(a^2), the share of the tensor's energy that is lost.

    None where it cannot be said: a tensor of zeros that is none any more, NaN or infinity.
    """

    name: str
    format_a: str
    format_b: str
    error: float | None


def tensor_errors(a: GGUFFile, b: GGUFFile, progress: Progress | None = None) -> Iterator[TensorError]:
    """Every tensor that both files have in the same shape, in the order of `a`, with pieces of one in memory.

    `progress("compare", done, tensors)` is told of every tensor.
    """
    shared = [info for name, info in a.tensors.items() if name in b.tensors and b.tensors[name].shape == info.shape]
    for done, info in enumerate(shared):
        if progress is not None:
            progress("compare", done, len(shared))
        other = b.tensors[info.name]
        yield TensorError(info.name, info.format.name, other.format.name, _error(a, b, info, other))


def _error(a: GGUFFile, b: GGUFFile, info: TensorInfo, other: TensorInfo) -> float | None:
    step = max(1, PIECE // info.columns)
    lost = energy = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for row in range(0, info.rows, step):
            stop = min(row + step, info.rows)
            values = info.format.decode(a.read_rows(info.name, row, stop)).astype(np.float64)
            energy += float(np.square(values).sum())
            values -= other.format.decode(b.read_rows(info.name, row, stop))
            lost += float(np.square(values).sum())
    if lost == 0.0:
        return 0.0
    error = lost / energy if energy else np.inf
    return error if np.isfinite(error) else None
