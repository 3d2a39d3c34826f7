"""`CompiledSearch`: the search of `quant/search.py` by compiled kernels."""

from __future__ import annotations

import struct

import numpy as np

from ..model.backend import Progress
from ..quant.block import Bytes, Floats
from ..quant.candidates import affine_candidates, boundaries, consecutive, mirrored, scale_candidates
from ..quant.encoder import Levels
from ..quant.points import Points, Targets, Trial
from ..quant.search import NUMPY
from .direct import DirectKernels
from .trial import CompiledTrial

KERNELS = (
    *("search_scale", "search_scale_table", "search_affine"),
    *("search_codes", "search_codes_table", "search_moments", "search_moments_table"),
)
_LANES = 16
_LINE = 64


class CompiledSearch:
    """`Search`, bit-equal to `NUMPY`.

    Any thread may call, several at once: each call runs in its own thread without holding Python's lock.
    """

    def __init__(self, isa: str | None = None, progress: Progress | None = None) -> None:
        self._kernels = DirectKernels(KERNELS, isa, progress)
        self._trial = CompiledTrial(isa, progress)

    def scale(self, x: Floats, w: Floats, levels: Levels) -> Floats:
        """See `Search.scale`."""
        groups, length = x.shape
        if not x.size:
            return NUMPY.scale(x, w, levels)
        x, w, candidates = _readable(x), _readable(w), scale_candidates(levels)
        values, middles = levels.astype(np.float32), boundaries(levels)
        scale, scratch = np.empty(groups, np.float32), _scratch(length)
        operands = {
            "x": _at(x),
            "w": _at(w),
            "groups": groups,
            "length": length,
            "candidates": _at(candidates),
            "tries": len(candidates),
            "mirrored": int(mirrored(levels)),
            "levels": _at(values),
            "middles": _at(middles),
            "count": len(levels),
            "scale": _at(scale),
            "scratch": _at(scratch),
        }
        kernel = "search_scale" if consecutive(levels) else "search_scale_table"
        self._kernels.call(kernel, "search_scale", operands)
        return scale

    def affine(self, x: Floats, w: Floats, top: int, most: float) -> tuple[Floats, Floats]:
        """See `Search.affine`."""
        groups, length = x.shape
        if not x.size:
            return NUMPY.affine(x, w, top, most)
        x, w, candidates = _readable(x), _readable(w), affine_candidates(top)
        scale, offset, scratch = np.empty(groups, np.float32), np.empty(groups, np.float32), _scratch(length)
        operands = {
            "x": _at(x),
            "w": _at(w),
            "groups": groups,
            "length": length,
            "top": _bits(top),
            "most": _bits(most),
            "candidates": _at(candidates),
            "tries": len(candidates),
            "scale": _at(scale),
            "offset": _at(offset),
            "scratch": _at(scratch),
        }
        self._kernels.call("search_affine", "search_affine", operands)
        return scale, offset

    def codes(self, x: Floats, scale: Floats, offset: Floats | None, levels: Levels) -> Bytes:
        """See `Search.codes`."""
        groups, length = x.shape
        if not x.size:
            return NUMPY.codes(x, scale, offset, levels)
        x, scale = _readable(x), _floats(scale)
        offset = None if offset is None else _floats(offset)
        values, middles, codes = levels.astype(np.float32), boundaries(levels), np.empty(x.size + _LANES, np.uint8)
        operands = {
            "x": _at(x),
            "scale": _at(scale),
            "offset": 0 if offset is None else _at(offset),
            "groups": groups,
            "length": length,
            "codes": _at(codes),
            "levels": _at(values),
            "middles": _at(middles),
            "count": len(levels),
        }
        self._kernels.call("search_codes" if consecutive(levels) else "search_codes_table", "search_codes", operands)
        return codes[: x.size].reshape(x.shape)

    def moments(self, x: Floats, w: Floats, scale: Floats, offset: Floats | None, levels: Levels) -> Floats:
        """See `Search.moments`."""
        groups, length = x.shape
        if not x.size:
            return NUMPY.moments(x, w, scale, offset, levels)
        x, w = _readable(x), _readable(w)
        whole = -(-groups // _LANES) * _LANES  # scales, offsets and sums are read and written 16 at a time
        scales, offsets = np.zeros(whole, np.float32), np.zeros(whole, np.float32)
        scales[:groups], offsets[:groups] = scale, 0 if offset is None else offset
        values, middles, scratch = levels.astype(np.float32), boundaries(levels), _scratch(length)
        sums = np.empty((6, whole), np.float32)
        operands = {
            "x": _at(x),
            "w": _at(w),
            "scale": _at(scales),
            "offset": _at(offsets),
            "groups": groups,
            "length": length,
            "levels": _at(values),
            "middles": _at(middles),
            "count": len(levels),
            "sums": _at(sums),
            "stride": 4 * whole,
            "scratch": _at(scratch),
        }
        kernel = "search_moments" if consecutive(levels) else "search_moments_table"
        self._kernels.call(kernel, "search_moments", operands)
        return sums[:, :groups]

    def trial(self, targets: Targets, inverse: Floats, points: Points) -> Trial:
        """See `Search.trial`."""
        return self._trial(targets, inverse, points)


def _at(array: Floats | Bytes) -> int:
    return int(array.ctypes.data)


def _floats(array: Floats) -> Floats:
    return np.ascontiguousarray(array, np.float32)


def _readable(array: Floats) -> Floats:
    """f32[G, L], contiguous, with memory behind it where kernels read 16 weights of the last group and it has less."""
    if array.shape[1] >= _LANES:
        return _floats(array)
    longer = np.zeros(array.size + _LANES, np.float32)
    longer[: array.size] = array.reshape(-1)
    return longer[: array.size].reshape(array.shape)


def _bits(value: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def _scratch(length: int) -> Floats:
    """Three floats a weight of 16 groups, from a cache line's start: vectors across two lines take twice as long."""
    floats = np.empty(3 * _LANES * max(length, _LANES) + _LINE // 4, np.float32)
    return floats[-floats.ctypes.data % _LINE // 4 :]
