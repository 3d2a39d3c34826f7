"""Codes of a block one column after the other, 16 rows side by side: the kernel of `quant/walk.py`.

It gives the same bits as NumPy there: products and sums are rounded one by one.
"""

from __future__ import annotations

from collections.abc import Callable

from .instruction import LAYOUTS
from .jit import helper
from .memory import load_float, load_i64
from .ops import absolute, add, below, div, load_f32, mul, same, select_if, store_f32, store_i8, sub
from .search_levels import index_of_any, index_of_consecutive, of_any, of_consecutive

(
    TARGETS, ANCHORS, VALUES, CODES, STRIDE, ROWS, COLUMNS, FORWARD, FORWARD_STRIDE,
    SCALES, OFFSETS, GROUP, LEVELS, MIDDLES, COUNT, SCRATCH,
) = LAYOUTS["feedback"].offsets()  # fmt: skip


@helper
def _copy(source, source_stride, target, target_stride, columns):
    """`columns` vectors of 16 rows. Side by side in the scratch, where strides of 4096 would share a few cache sets."""
    for j in range(columns):
        store_f32(target + j * target_stride, load_f32(source + j * source_stride))


@helper
def _pass_on(scratch, missed, forward, first, columns):
    """Add what column `first - 1` missed to the targets of all later ones."""
    for k in range(first, columns):
        target = scratch + 64 * k
        store_f32(target, add(load_f32(target), mul(same(load_float(forward + 4 * k)), missed)))


def _kernel(nearest: Callable[..., object], index: Callable[..., object]) -> Callable[..., None]:
    def feedback(instr, state, tid, nth):
        columns, stride, scratch = load_i64(instr + COLUMNS), load_i64(instr + STRIDE), load_i64(instr + SCRATCH)
        levels, middles, count = load_i64(instr + LEVELS), load_i64(instr + MIDDLES), load_i64(instr + COUNT)
        scales, offsets, group = load_i64(instr + SCALES), load_i64(instr + OFFSETS), load_i64(instr + GROUP)
        forward, forward_stride = load_i64(instr + FORWARD), load_i64(instr + FORWARD_STRIDE)
        for row in range(0, 4 * load_i64(instr + ROWS), 64):
            targets, anchors = load_i64(instr + TARGETS) + row, load_i64(instr + ANCHORS) + row
            values, codes = load_i64(instr + VALUES) + row, load_i64(instr + CODES) + row // 4
            _copy(targets, stride, scratch, 64, columns)
            for j in range(columns):
                at = j // group * stride + row
                scale, offset, zero = load_f32(scales + at), same(0.0), same(0.0)
                if offsets != 0:
                    offset = load_f32(offsets + at)
                ratio = div(sub(load_f32(scratch + 64 * j), offset), scale)
                ratio = select_if(below(zero, absolute(scale)), ratio, zero)
                store_i8(codes + j * (stride // 4), index(ratio, levels, middles, count))
                value = add(mul(nearest(ratio, levels, middles, count), scale), offset)
                store_f32(values + j * stride, value)
                missed = sub(load_f32(anchors + j * stride), value)
                _pass_on(scratch, missed, forward + j * forward_stride, j + 1, columns)
            _copy(scratch, 64, targets, stride, columns)

    return feedback


KERNELS = {
    "feedback": _kernel(of_consecutive, index_of_consecutive),
    "feedback_table": _kernel(of_any, index_of_any),
}
