"""What the error of groups depends on while their codes stay."""

from __future__ import annotations

from collections.abc import Callable

from .instruction import LAYOUTS
from .memory import load_i64
from .ops import add, below, div, load_f32, mul, same, select_if, store_f32, sub
from .search_groups import turn
from .search_levels import of_any, of_consecutive

(
    X, W, SCALE, OFFSET, GROUPS, LENGTH, LEVELS, MIDDLES, COUNT, SUMS, STRIDE, SCRATCH,
) = LAYOUTS["search_moments"].offsets()  # fmt: skip


def _moments_kernel(nearest: Callable[..., object]) -> Callable[..., None]:
    def search_moments(instr, state, tid, nth):
        length, groups, scratch = load_i64(instr + LENGTH), load_i64(instr + GROUPS), load_i64(instr + SCRATCH)
        levels, middles, count = load_i64(instr + LEVELS), load_i64(instr + MIDDLES), load_i64(instr + COUNT)
        sums, stride, size = load_i64(instr + SUMS), load_i64(instr + STRIDE), 64 * length
        zero, one = same(0.0), same(1.0)
        for group in range(0, groups, 16):
            last = min(16, groups - group) - 1
            turn(load_i64(instr + X) + 4 * length * group, scratch, length, last)
            turn(load_i64(instr + W) + 4 * length * group, scratch + size, length, last)
            scale = load_f32(load_i64(instr + SCALE) + 4 * group)
            offset = load_f32(load_i64(instr + OFFSET) + 4 * group)
            alive = below(zero, select_if(below(scale, zero), one, scale))
            step = select_if(alive, scale, one)
            qq, q1, ones, qr, r1, rr = zero, zero, zero, zero, zero, zero
            for i in range(scratch, scratch + size, 64):
                x, w = load_f32(i), load_f32(i + size)
                q = nearest(select_if(alive, div(sub(x, offset), step), zero), levels, middles, count)
                r, wq = sub(x, add(mul(scale, q), offset)), mul(w, q)
                wr = mul(w, r)
                qq, q1, ones = add(qq, mul(wq, q)), add(q1, wq), add(ones, w)
                qr, r1, rr = add(qr, mul(wq, r)), add(r1, wr), add(rr, mul(wr, r))
            at = sums + 4 * group
            store_f32(at, qq)
            store_f32(at + stride, q1)
            store_f32(at + 2 * stride, ones)
            store_f32(at + 3 * stride, qr)
            store_f32(at + 4 * stride, r1)
            store_f32(at + 5 * stride, rr)

    return search_moments


KERNELS = {"search_moments": _moments_kernel(of_consecutive), "search_moments_table": _moments_kernel(of_any)}
