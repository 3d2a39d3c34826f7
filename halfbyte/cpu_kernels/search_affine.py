"""The best scale and offset of groups of weights."""

from __future__ import annotations

import numpy as np

from ..quant.search import FLAT, HUGE, REFINEMENTS, TINY
from .instruction import LAYOUTS
from .jit import helper
from .memory import bits_to_float, load_float, load_i64
from .ops import add, below, div, load_f32, minimum, mul, same, select_if, sub
from .search_groups import store, turn, units
from .search_levels import rounded

X, W, GROUPS, LENGTH, TOP, MOST, CANDIDATES, TRIES, SCALE, OFFSET, SCRATCH = LAYOUTS["search_affine"].offsets()
_INFINITE = np.float32(np.inf)


@helper
def _code_sums(scratch, size, top, inverse, shift):
    """Sums of the codes, of their squares and of their products with the weights, each as often as errors count."""
    codes, square, along = same(0.0), same(0.0), same(0.0)
    for i in range(scratch, scratch + size, 64):
        r = add(mul(load_f32(i), inverse), shift)
        q = rounded(r, same(0.0), top)
        wq = mul(load_f32(i + size), q)
        codes, square = add(codes, wq), add(square, mul(wq, q))
        along = add(along, mul(load_f32(i + 2 * size), q))
    return codes, square, along


@helper
def _try_affine(sums, known, best):
    """Best of (gain, scale, offset): what was, or the solution for these sums where the offset keeps to its room."""
    codes, square, along = sums
    sum_w, sum_y, room = known
    gain, scale, offset = best
    weighted = mul(sum_w, square)
    spread = sub(weighted, mul(codes, codes))
    s = div(sub(mul(sum_w, along), mul(sum_y, codes)), spread)
    o = div(sub(sum_y, mul(s, codes)), sum_w)
    over = below(room, o)
    o = select_if(over, room, o)
    s = select_if(over, div(sub(along, mul(room, codes)), square), s)
    two = same(2.0)
    gained = mul(s, sub(sub(mul(two, along), mul(s, square)), mul(two, mul(o, codes))))
    gained = add(gained, mul(o, sub(mul(two, sum_y), mul(o, sum_w))))
    allowed = select_if(below(mul(same(FLAT), weighted), spread), s, same(0.0))
    better = below(same(0.0), select_if(below(gain, gained), allowed, same(0.0)))
    return select_if(better, gained, gain), select_if(better, s, scale), select_if(better, o, offset)


def search_affine(instr, state, tid, nth):
    """Scale and offset of `groups` groups, in units where each spans 0 .. 1."""
    length, groups, scratch = load_i64(instr + LENGTH), load_i64(instr + GROUPS), load_i64(instr + SCRATCH)
    top, bound = same(bits_to_float(load_i64(instr + TOP))), same(bits_to_float(load_i64(instr + MOST)))
    candidates, tries = load_i64(instr + CANDIDATES), load_i64(instr + TRIES)
    size, ones, zero = 64 * length, same(1.0), same(0.0)
    for group in range(0, groups, 16):
        lanes = min(16, groups - group)
        high, low = turn(load_i64(instr + X) + 4 * length * group, scratch, length, lanes - 1)
        most, _ = turn(load_i64(instr + W) + 4 * length * group, scratch + size, length, lanes - 1)
        low = add(minimum(low, bound), zero)
        span = sub(high, low)
        reach = select_if(below(span, same(_INFINITE)), span, zero)
        dead = below(reach, same(TINY))
        unit = select_if(dead, ones, span)
        inverse = div(ones, unit)
        sum_w, sum_y = units(scratch, size, low, inverse, most)
        known = (sum_w, sum_y, mul(sub(bound, low), inverse))
        best = (same(-HUGE), div(ones, top), zero)
        for t in range(tries):
            steps, shift = same(load_float(candidates + 8 * t)), same(load_float(candidates + 8 * t + 4))
            best = _try_affine(_code_sums(scratch, size, top, steps, shift), known, best)
        for _ in range(REFINEMENTS):
            steps = minimum(div(ones, best[1]), same(HUGE))
            best = _try_affine(_code_sums(scratch, size, top, steps, sub(zero, mul(best[2], steps))), known, best)
        scale = select_if(dead, zero, mul(best[1], unit))
        offset = select_if(dead, low, add(low, mul(best[2], unit)))
        store(load_i64(instr + SCALE) + 4 * group, scale, lanes)
        store(load_i64(instr + OFFSET) + 4 * group, add(minimum(offset, bound), zero), lanes)


KERNELS = {"search_affine": search_affine}
