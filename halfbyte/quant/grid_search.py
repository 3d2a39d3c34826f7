"""The nearest point for every few weights, in NumPy: every point is tried, so nothing is nearer.

The order of every sum is fixed, and so are ties (the first point), so that a compiled search gives the same bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .block import Floats
from .points import Half, Points, Targets, Trial

_SLICE = 2**21
"""Distances held at a time."""

Codes = NDArray[np.intp]


def trial(targets: Targets, inverse: Floats, points: Points) -> Trial:
    """The points nearest to `x * inverse`, inverse f32[G] one over the scale of each group."""
    length, groups = targets.x.shape
    codes = np.empty((length // points.width, groups), np.intp)
    step = max(1, _SLICE // (len(points.values) * len(codes)))
    for start in range(0, groups, step):
        part = slice(start, start + step)
        y = targets.x[:, part] * inverse[part]
        odd = None if targets.odd is None else targets.odd[:, part]
        codes[:, part] = _nearest(y, targets.w[:, part], odd, points)
    return _measure(targets, codes, points)


def _nearest(y: Floats, w: Floats, odd: Floats | None, points: Points) -> Codes:
    """Best codes [L / n, G] for y f32[L, G] and w f32[L, G]."""
    width, groups = points.width, y.shape[1]
    # A code a column: those of one group lie G apart.
    y, w = (part.reshape(-1, width, groups).transpose(1, 0, 2).reshape(width, -1) for part in (y, w))
    levels = points.levels.astype(np.float32)[:, None]
    weighted = w[:, None] * levels
    costs = weighted * (levels - (y + y)[:, None])
    plain = [_sums(part, half) for part, half in zip(np.split(costs, 2), points.halves, strict=True)]
    of = [half.of for half in points.halves]
    if odd is None:
        nearest: Codes = (plain[0][of[0]] + plain[1][of[1]]).argmin(axis=0)
        return nearest.reshape(-1, groups)
    odd = np.repeat(odd, 8 // width, axis=0).reshape(-1)
    extra = weighted * (y * np.float32(4) * odd)[:, None]
    wrong = [a + _least(part, half) for a, part, half in zip(plain, np.split(extra, 2), points.halves, strict=True)]
    distances = np.minimum(wrong[0][of[0]] + plain[1][of[1]], plain[0][of[0]] + wrong[1][of[1]])
    codes: Codes = distances.argmin(axis=0)
    if points.width == 8:
        return codes.reshape(-1, groups)
    # 8 neighbours are two codes, and only one of them has the wrong sign.
    with_wrong = distances.min(axis=0)
    distances = plain[0][of[0]] + plain[1][of[1]]
    return _one_of_two(codes, with_wrong, distances.argmin(axis=0), distances.min(axis=0), groups)


def _one_of_two(codes: Codes, cost: Floats, plain_codes: Codes, plain_cost: Floats, groups: int) -> Codes:
    """Codes of the cheaper way: the first of two with the wrong sign and the second without, or the reverse."""
    (wrong, plain), (cost_wrong, cost_plain) = (
        [part.reshape(-1, 2, groups) for part in pair] for pair in ((codes, plain_codes), (cost, plain_cost))
    )
    first = cost_wrong[:, 0] + cost_plain[:, 1] <= cost_plain[:, 0] + cost_wrong[:, 1]
    chosen = np.stack([np.where(first, wrong[:, 0], plain[:, 0]), np.where(first, plain[:, 1], wrong[:, 1])], axis=1)
    return chosen.reshape(-1, groups)


def _sums(costs: Floats, half: Half) -> Floats:
    """f32[h, C] of f32[n / 2, levels, C]."""
    total: Floats = costs[0][half.digits[:, 0]]
    for j in range(1, len(costs)):
        total = total + costs[j][half.digits[:, j]]
    return total


def _least(extra: Floats, half: Half) -> Floats:
    """f32[h, C] of f32[n / 2, levels, C]."""
    least: Floats = extra[0][half.digits[:, 0]]
    for j in range(1, len(extra)):
        least = np.minimum(least, extra[j][half.digits[:, j]])
    return least


def _measure(targets: Targets, codes: Codes, points: Points) -> Trial:
    """Sums in the order of the weights; which sign is wrong: the one that costs least, the first of equals."""
    length, groups = targets.x.shape
    chosen = points.values[codes].astype(np.float32)
    dot, square = np.zeros(groups, np.float32), np.zeros(groups, np.float32)
    wrong = None if targets.odd is None else np.empty((length // 8, groups), np.int8)
    for eight in range(length // 8):
        products = np.empty((8, groups), np.float32)
        for j in range(8):
            at = 8 * eight + j
            q = chosen[at // points.width, :, at % points.width]
            products[j] = targets.w[at] * targets.x[at] * q
            dot += products[j]
            square += targets.w[at] * q * q
        if wrong is not None and targets.odd is not None:
            odd = targets.odd[eight]
            wrong[eight] = np.where(odd > 0, products.argmin(axis=0), -1)
            dot -= products.min(axis=0) * (odd + odd)
    return Trial(codes.astype(np.uint16), wrong, dot, square)
