"""Codes of groups whose scale and offset are chosen."""

from __future__ import annotations

from collections.abc import Callable

from .instruction import LAYOUTS
from .memory import load_float, load_i64
from .ops import div, load_f32, same, store_i8, sub
from .search_levels import index_of_any, index_of_consecutive

X, SCALE, OFFSET, GROUPS, LENGTH, LEVELS, MIDDLES, COUNT, CODES = LAYOUTS["search_codes"].offsets()


def _codes_kernel(index: Callable[..., object]) -> Callable[..., None]:
    def search_codes(instr, state, tid, nth):
        length, offset, scale = load_i64(instr + LENGTH), load_i64(instr + OFFSET), load_i64(instr + SCALE)
        levels, middles, count = load_i64(instr + LEVELS), load_i64(instr + MIDDLES), load_i64(instr + COUNT)
        x, codes = load_i64(instr + X), load_i64(instr + CODES)
        for group in range(load_i64(instr + GROUPS)):
            step, zero = load_float(scale + 4 * group), same(0.0)
            if offset != 0:
                zero = same(load_float(offset + 4 * group))
            for c in range(0, length, 16):  # what goes beyond a short group is the next one's, and written again there
                i = group * length + max(0, min(c, length - 16))
                r = same(0.0)
                if step != 0:
                    r = div(sub(load_f32(x + 4 * i), zero), same(step))
                store_i8(codes + i, index(r, levels, middles, count))

    return search_codes


KERNELS = {"search_codes": _codes_kernel(index_of_consecutive), "search_codes_table": _codes_kernel(index_of_any)}
