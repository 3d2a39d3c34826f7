"""What kernels read a program's weights as: packed matrices, rows of a table where the file has them, vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model.backend import Weight
from ..model.program import Embed, EmbedPositions, ExpertLinear, Linear, Program, ShortConv
from .packed import FAMILY_OF


class Table(NamedTuple):
    """Rows u8[N, row_bytes] of a format that a kernel decodes."""

    format: str
    data: NDArray[np.uint8]


def matrices_of(program: Program, weights: Mapping[str, Weight]) -> dict[str, Weight]:
    """Those that products read."""
    return {op.weight: weights[op.weight] for op in program.ops if isinstance(op, Linear | ExpertLinear)}


def tables_of(program: Program, weights: Mapping[str, Weight]) -> dict[str, Table]:
    """Those that rows are taken from; of words not in formats without a kernel, whose rows the caller decodes."""
    found = {}
    for op in program.ops:
        if not isinstance(op, (Embed, EmbedPositions)):
            continue
        weight = weights[op.table]
        if weight.format.name in FAMILY_OF:
            found[op.table] = Table(weight.format.name, weight.data)
        elif isinstance(op, EmbedPositions):
            found[op.table] = Table("f32", weight.decode().view(np.uint8))
    return found


def vectors_of(program: Program, weights: Mapping[str, Weight]) -> dict[str, NDArray[np.float32]]:
    """All others, f32[n] each; a filter tap by tap, each of whole vectors."""
    others = set(matrices_of(program, weights))
    others |= {op.table for op in program.ops if isinstance(op, (Embed, EmbedPositions))}
    filters = {op.weight for op in program.ops if isinstance(op, ShortConv)}
    return {
        name: _by_tap(weights[name]) if name in filters else weights[name].decode().reshape(-1)
        for name in program.weight_names()
        if name not in others
    }


def _by_tap(weight: Weight) -> NDArray[np.float32]:
    """f32[D, taps] as one row a tap."""
    channels, taps = weight.shape
    rows = np.zeros((taps, -(-channels // 16) * 16), np.float32)
    rows[:, :channels] = weight.decode().T
    return rows.reshape(-1)
