"""`CompiledWalk`: the walk of `quant/walk.py` by a compiled kernel."""

from __future__ import annotations

import numpy as np

from ..model.backend import Progress
from ..quant.block import Bytes, Floats
from ..quant.candidates import boundaries, consecutive
from ..quant.encoder import Grid
from .direct import DirectKernels

KERNELS = ("feedback", "feedback_table")
_LANES = 16
_LINE = 64


class CompiledWalk:
    """`Walk`, bit-equal to `NUMPY_WALK`. Any thread may call, several at once, without holding Python's lock."""

    def __init__(self, isa: str | None = None, progress: Progress | None = None) -> None:
        self._kernels = DirectKernels(KERNELS, isa, progress)

    def codes(self, targets: Floats, anchors: Floats, forward: Floats, grid: Grid) -> tuple[Bytes, Floats]:
        """See `Walk.codes`."""
        length, rows = targets.shape
        wide = _padded(targets)
        anchors, scales = _padded(anchors), _padded(grid.scale.T)
        offsets = None if grid.offset is None else _padded(grid.offset.T)
        values, codes = np.empty_like(wide), np.empty(wide.shape, np.uint8)
        levels, middles = grid.levels.astype(np.float32), boundaries(grid.levels)
        scratch = np.empty(_LANES * length + _LINE // 4, np.float32)
        assert forward.strides[1] == forward.itemsize
        operands = {
            "targets": wide.ctypes.data,
            "anchors": anchors.ctypes.data,
            "values": values.ctypes.data,
            "codes": codes.ctypes.data,
            "stride": wide.strides[0],
            "rows": wide.shape[1],
            "columns": length,
            "forward": forward.ctypes.data,
            "forward_stride": forward.strides[0],
            "scales": scales.ctypes.data,
            "offsets": 0 if offsets is None else offsets.ctypes.data,
            "group": length // len(scales),
            "levels": levels.ctypes.data,
            "middles": middles.ctypes.data,
            "count": len(levels),
            "scratch": scratch.ctypes.data + -scratch.ctypes.data % _LINE,
        }
        self._kernels.call("feedback" if consecutive(grid.levels) else "feedback_table", "feedback", operands)
        if wide is not targets:
            targets[:] = wide[:, :rows]
        return codes[:, :rows], values[:, :rows]


def _padded(columns: Floats) -> Floats:
    """f32[L, n] with n a multiple of 16, side by side; the same array where it is so already."""
    length, rows = columns.shape
    if rows % _LANES == 0:
        return np.ascontiguousarray(columns)
    wide = np.zeros((length, -(-rows // _LANES) * _LANES), np.float32)
    wide[:, :rows] = columns
    return wide
