"""The largest logit of every row tile, noted while the logits are at hand.

A step leaves logits all over the caches of the cores that made them, and reading them back takes longer than anything
else between two steps. The peaks are a sixteenth of that, and only the tiles of the largest hold what is chosen from.
"""

from __future__ import annotations

import numpy as np

from .instruction import PEAK_ROWS
from .jit import helper
from .memory import load_float, load_i64, store_float
from .ops import largest, load_f32, maximum, same
from .result import OUT, OUT_STRIDE, PEAKS, ROWS


@helper
def note_peaks(instr, first, last, count):
    """Note the peaks of the row tiles `first` to `last - 1` of `count` tokens, where they are asked for."""
    peaks, rows = load_i64(instr + PEAKS), load_i64(instr + ROWS)
    if peaks == 0 or count > PEAK_ROWS:
        return
    stride = peak_stride(rows)
    for token in range(count):
        out = load_i64(instr + OUT) + token * load_i64(instr + OUT_STRIDE)
        for tile in range(first, last):
            store_float(peaks + token * stride + 4 * tile, _peak(out + 64 * tile, rows - 16 * tile))


@helper
def _peak(at, left):
    """Of up to 16 floats; NaN counts for nothing."""
    lowest = np.float32(-np.inf)
    if left >= 16:
        return largest(maximum(load_f32(at), same(lowest)))
    for i in range(left):
        if load_float(at + 4 * i) > lowest:
            lowest = load_float(at + 4 * i)
    return lowest


@helper
def peak_stride(rows):
    """Bytes from one token's peaks to the next's."""
    return (rows + 255) // 256 * 64
