"""The best scale of groups of weights."""

from __future__ import annotations

from collections.abc import Callable

from ..quant.search import HUGE, REFINEMENTS, TINY
from .instruction import LAYOUTS
from .jit import helper
from .memory import load_float, load_i64
from .ops import absolute, add, below, div, load_f32, maximum, minimum, mul, same, select_if, sub
from .search_groups import store, turn, units
from .search_levels import of_any, of_consecutive

(
    X, W, GROUPS, LENGTH, CANDIDATES, TRIES, LEVELS, MIDDLES, COUNT, MIRRORED, SCALE, SCRATCH,
) = LAYOUTS["search_scale"].offsets()  # fmt: skip


@helper
def _try_scale(nearest, scratch, size, levels, middles, count, inverse, gain, scale):
    """Gain and scale of the better one: the best so far, or what fits the codes at this inverse scale."""
    along, square = same(0.0), same(0.0)
    for i in range(scratch, scratch + size, 64):
        q = nearest(mul(load_f32(i), inverse), levels, middles, count)
        along = add(along, mul(load_f32(i + 2 * size), q))
        square = add(square, mul(mul(load_f32(i + size), q), q))
    fit = div(along, square)
    gained = mul(along, fit)
    better = below(gain, gained)
    return select_if(better, gained, gain), select_if(better, fit, scale)


def _scale_kernel(nearest: Callable[..., object]) -> Callable[..., None]:
    def search_scale(instr, state, tid, nth):
        length, groups, scratch = load_i64(instr + LENGTH), load_i64(instr + GROUPS), load_i64(instr + SCRATCH)
        levels, middles, count = load_i64(instr + LEVELS), load_i64(instr + MIDDLES), load_i64(instr + COUNT)
        candidates, tries = load_i64(instr + CANDIDATES), load_i64(instr + TRIES)
        size, ones = 64 * length, same(1.0)
        for group in range(0, groups, 16):
            lanes = min(16, groups - group)
            high, low = turn(load_i64(instr + X) + 4 * length * group, scratch, length, lanes - 1)
            most, _ = turn(load_i64(instr + W) + 4 * length * group, scratch + size, length, lanes - 1)
            extreme = select_if(below(high, sub(same(0.0), low)), low, high)
            dead = below(absolute(extreme), same(TINY))
            unit = select_if(dead, ones, extreme)
            units(scratch, size, same(0.0), div(ones, unit), most)
            gain, scale = same(0.0), div(ones, same(load_float(candidates)))
            for t in range(tries):
                inverse = same(load_float(candidates + 4 * t))
                gain, scale = _try_scale(nearest, scratch, size, levels, middles, count, inverse, gain, scale)
            for _ in range(REFINEMENTS):
                inverse = minimum(maximum(div(ones, scale), same(-HUGE)), same(HUGE))
                gain, scale = _try_scale(nearest, scratch, size, levels, middles, count, inverse, gain, scale)
            result = select_if(dead, same(0.0), mul(scale, unit))
            if load_i64(instr + MIRRORED) != 0:
                result = absolute(result)
            store(load_i64(instr + SCALE) + 4 * group, result, lanes)

    return search_scale


KERNELS = {"search_scale": _scale_kernel(of_consecutive), "search_scale_table": _scale_kernel(of_any)}
