"""The nearest point for every few weights: 16 groups side by side, every point tried. Same bits as `quant/grid_search`.

What a level costs a weight is looked up, so is what half a point costs: a point costs one addition and a comparison.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .instruction import LAYOUTS
from .jit import helper
from .memory import load_byte, load_float, load_i32, load_i64, store_byte, store_u16
from .ops import add, below, load_f32, load_i8_as_f32, minimum, mul, same, select_if, store_f32, store_i8, sub

X, W, ODD, INVERSE, GROUPS, LENGTH, LEVELS, LEVEL_COUNT, *_OTHERS = LAYOUTS["trial"].offsets()
FIRST, FIRST_COUNT, SECOND, SECOND_COUNT, PAIRS, POINTS, VALUES, CODES, WRONG, DOT, SQUARE, SCRATCH = _OTHERS
INFINITE = np.float32(np.inf)


@helper
def _costs(instr, x, w, step, inverse, odd, table, width, even):
    """Cost of each level for each weight of a code, and behind all of them what its wrong sign would add."""
    levels, count = load_i64(instr + LEVELS), load_i64(instr + LEVEL_COUNT)
    extra = table + 64 * width * count
    for j in range(width):
        y, share = mul(load_f32(x + j * step), inverse), load_f32(w + j * step)
        doubled, wrong = add(y, y), mul(mul(y, same(np.float32(4))), odd)
        for v in range(count):
            level = same(load_float(levels + 4 * v))
            weighted = mul(share, level)
            store_f32(table + 64 * (j * count + v), mul(weighted, sub(level, doubled)))
            if even:
                store_f32(extra + 64 * (j * count + v), mul(weighted, wrong))


@helper
def _halves(digits, count, table, extra, out, width, even):
    """What each half costs, and the same with the sign wrong that costs least there."""
    for h in range(count):
        at = load_i32(digits)
        total, least = load_f32(table + at), load_f32(extra + at)
        for j in range(1, width // 2):
            at = load_i32(digits + 4 * j)
            total = add(total, load_f32(table + at))
            if even:
                least = minimum(least, load_f32(extra + at))
        store_f32(out + 128 * h, total)
        if even:
            store_f32(out + 128 * h + 64, add(total, least))
        digits += 2 * width


@helper
def _plain(first, second, pair):
    return add(load_f32(first + load_i32(pair)), load_f32(second + load_i32(pair + 4)))


@helper
def _wrong(first, second, pair):
    """With one wrong sign, in the first half or in the second."""
    a, b = first + load_i32(pair), second + load_i32(pair + 4)
    return minimum(add(load_f32(a + 64), load_f32(b)), add(load_f32(a), load_f32(b + 64)))


@helper
def _search(instr, first, second, cost_of):
    """Least cost of a point in each lane, and which: the first of equals.

    Two searches go side by side, since each must wait for its own last comparison.
    """
    half = (load_i64(instr + POINTS) + 1) // 2
    last = load_i64(instr + POINTS) - half
    low = load_i64(instr + PAIRS)
    high = low + 8 * last
    best, index = same(INFINITE), same(np.float32(0))
    best_high, index_high, k = best, index, index
    for at in range(0, 8 * half, 8):
        cost = cost_of(first, second, low + at)
        index = select_if(below(cost, best), k, index)
        best = minimum(cost, best)
        cost = cost_of(first, second, high + at)
        index_high = select_if(below(cost, best_high), k, index_high)
        best_high = minimum(cost, best_high)
        k = add(k, same(np.float32(1)))
    higher = below(best_high, best)
    return minimum(best_high, best), select_if(higher, add(index_high, same(np.float32(last))), index)


@helper
def _tables(instr, x, w, step, inverse, odd, width, even):
    """Fill the tables of one code; where those of the two halves are."""
    table = load_i64(instr + SCRATCH)
    _costs(instr, x, w, step, inverse, odd, table, width, even)
    extra = table + 64 * width * load_i64(instr + LEVEL_COUNT)
    first = extra + (extra - table)
    firsts, seconds = load_i64(instr + FIRST_COUNT), load_i64(instr + SECOND_COUNT)
    _halves(load_i64(instr + FIRST), firsts, table, extra, first, width, even)
    _halves(load_i64(instr + SECOND), seconds, table, extra, first + 128 * firsts, width, even)
    return first, first + 128 * firsts


@helper
def _keep(instr, index, codes, place, width):
    """Write the codes of 16 lanes and, for each of their weights, 16 bytes of values."""
    numbers = place + 128
    store_f32(numbers, index)
    for lane in range(16):
        k = np.int64(load_float(numbers + 4 * lane))
        store_u16(codes + 2 * lane, k)
        point = load_i64(instr + VALUES) + width * k
        for j in range(width):
            store_byte(place + 16 * j + lane, load_byte(point + j))


@helper
def _one(instr, x, w, step, inverse, odd, codes, groups, place, width, even):
    """8 weights of one code."""
    first, second = _tables(instr, x, w, step, inverse, odd, width, even)
    if even:
        _, index = _search(instr, first, second, _wrong)
    else:
        _, index = _search(instr, first, second, _plain)
    _keep(instr, index, codes, place, width)


@helper
def _two(instr, x, w, step, inverse, odd, codes, groups, place, width, even):
    """8 weights of two codes, one of which has the wrong sign."""
    first, second = _tables(instr, x, w, step, inverse, odd, width, even)
    plain_cost, index = _search(instr, first, second, _plain)
    wrong_cost, wrong = plain_cost, index
    if even:
        wrong_cost, wrong = _search(instr, first, second, _wrong)
    first, second = _tables(instr, x + 4 * step, w + 4 * step, step, inverse, odd, width, even)
    other_plain_cost, other = _search(instr, first, second, _plain)
    if even:
        other_wrong_cost, other_wrong = _search(instr, first, second, _wrong)
        late = below(add(plain_cost, other_wrong_cost), add(wrong_cost, other_plain_cost))
        index, other = select_if(late, index, wrong), select_if(late, other_wrong, other)
    _keep(instr, index, codes, place, width)
    _keep(instr, other, codes + 2 * groups, place + 64, width)


@helper
def _measure(x, w, step, odd, place, wrong, dot, square, even):
    """Sums with the chosen values of 8 weights added; which of their signs is wrong where one must be."""
    least, which = same(INFINITE), same(np.float32(-1))
    for j in range(8):
        share, q = load_f32(w + j * step), load_i8_as_f32(place + 16 * j)
        product = mul(mul(share, load_f32(x + j * step)), q)
        dot, square = add(dot, product), add(square, mul(mul(share, q), q))
        cheaper = below(product, least)
        least, which = select_if(cheaper, product, least), select_if(cheaper, same(np.float32(j)), which)
    if even:
        dot = sub(dot, mul(least, add(odd, odd)))
        store_i8(wrong, select_if(below(same(np.float32(0)), odd), which, same(np.float32(-1))))
    return dot, square


@helper
def _trial(instr, group, eight, width, even):
    """16 groups: `eight` finds the codes of 8 weights of each."""
    groups = load_i64(instr + GROUPS)
    step, codes, place = 4 * groups, load_i64(instr + CODES) + 2 * group, load_i64(instr + SCRATCH) - 256
    inverse = load_f32(load_i64(instr + INVERSE) + 4 * group)
    dot, square, odd = same(np.float32(0)), same(np.float32(0)), same(np.float32(0))
    for start in range(0, load_i64(instr + LENGTH), 8):
        x = load_i64(instr + X) + start * step + 4 * group
        w = load_i64(instr + W) + start * step + 4 * group
        if even:
            odd = load_f32(load_i64(instr + ODD) + start // 8 * step + 4 * group)
        eight(instr, x, w, step, inverse, odd, codes + start // width * 2 * groups, groups, place, width, even)
        wrong = load_i64(instr + WRONG) + start // 8 * groups + group
        dot, square = _measure(x, w, step, odd, place, wrong, dot, square, even)
    store_f32(load_i64(instr + DOT) + 4 * group, dot)
    store_f32(load_i64(instr + SQUARE) + 4 * group, square)


def _kernel(width: int, even: bool) -> Callable[..., None]:
    eight = _one if width == 8 else _two

    def trial(instr, state, tid, nth):
        for group in range(16 * tid, load_i64(instr + GROUPS), 16 * nth):
            _trial(instr, group, eight, width, even)

    return trial


KERNELS = {
    "trial_free4": _kernel(4, False),
    "trial_free8": _kernel(8, False),
    "trial_even4": _kernel(4, True),
    "trial_even8": _kernel(8, True),
}
