"""`CompiledTrial`: the nearest points of a grid, found by kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model.backend import Progress
from ..quant.block import Floats
from ..quant.points import Points, Targets, Trial
from .direct import DirectKernels

_LANES = 16
_PLACE = 256
"""Bytes before the tables where chosen values lie."""


class CompiledTrial:
    """`Search.trial` with the same bits as the NumPy one; any thread may call, several at once.

    A kernel is loaded when first asked for: most formats need none of them.
    """

    def __init__(self, isa: str | None = None, progress: Progress | None = None) -> None:
        self._isa, self._progress = isa, progress
        self._loaded: dict[str, DirectKernels] = {}
        self._loading = Lock()

    def _kernel(self, name: str) -> DirectKernels:
        with self._loading:
            if name not in self._loaded:
                self._loaded[name] = DirectKernels([name], self._isa, self._progress)
            return self._loaded[name]

    def __call__(self, targets: Targets, inverse: Floats, points: Points) -> Trial:
        """See `Search.trial`; fastest where the number of groups divides by 16 and arrays are contiguous."""
        groups = targets.x.shape[1]
        x, w, scales = _whole(targets.x), _whole(targets.w), _whole(inverse[None])
        length, padded = x.shape
        odd = scales if targets.odd is None else _whole(targets.odd)
        codes = np.empty((length // points.width, padded), np.uint16)
        wrong = np.empty((length // 8, padded), np.int8)
        dot, square = np.empty(padded, np.float32), np.empty(padded, np.float32)
        tables = _tables(points)
        scratch = np.empty(_PLACE + tables.scratch_bytes + 64, np.uint8)
        operands = {
            "x": _at(x),
            "w": _at(w),
            "odd": _at(odd),
            "inverse": _at(scales),
            "groups": padded,
            "length": length,
            "codes": _at(codes),
            "wrong": _at(wrong),
            "dot": _at(dot),
            "square": _at(square),
            "scratch": (_at(scratch) + _PLACE + 63) // 64 * 64,
        }
        kernel = f"trial_{'even' if points.even else 'free'}{points.width}"
        self._kernel(kernel).call(kernel, "trial", operands | tables.operands)
        kept = None if targets.odd is None else wrong[:, :groups]
        return Trial(codes[:, :groups], kept, dot[:groups], square[:groups])


@dataclass(frozen=True)
class _Tables:
    """Points as the kernels want them: indices are byte offsets in the kernel's tables of vectors, `values` bytes."""

    levels: Floats
    first: NDArray[np.int32]
    second: NDArray[np.int32]
    pairs: NDArray[np.int32]
    values: NDArray[np.int8]

    @property
    def operands(self) -> dict[str, int]:
        """Those that tell a kernel the points."""
        return {
            "levels": _at(self.levels),
            "level_count": len(self.levels),
            "first": _at(self.first),
            "first_count": len(self.first),
            "second": _at(self.second),
            "second_count": len(self.second),
            "pairs": _at(self.pairs),
            "points": len(self.pairs),
            "values": _at(self.values),
        }

    @property
    def scratch_bytes(self) -> int:
        """Two tables of the levels of each weight, two values of each half."""
        return int(128 * (self.values.shape[1] * len(self.levels) + len(self.first) + len(self.second)))


@cache
def _tables(points: Points) -> _Tables:
    first, second = points.halves
    half, levels = points.width // 2, len(points.levels)
    weight = np.arange(half, dtype=np.int32) * np.int32(levels)
    return _Tables(
        points.levels.astype(np.float32),
        np.ascontiguousarray(64 * (first.digits + weight), np.int32),
        np.ascontiguousarray(64 * (second.digits + weight + half * levels), np.int32),
        np.ascontiguousarray(128 * np.stack([first.of, second.of], axis=1), np.int32),
        np.ascontiguousarray(points.values, np.int8),
    )


def _at(array: NDArray[Any]) -> int:
    return int(array.ctypes.data)


def _whole(values: Floats) -> Floats:
    """Contiguous, columns filled up with zeros to whole vectors."""
    spare = -values.shape[1] % _LANES
    return np.ascontiguousarray(np.pad(values, ((0, 0), (0, spare))) if spare else values, dtype=np.float32)
