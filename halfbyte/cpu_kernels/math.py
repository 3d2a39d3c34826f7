"""Functions of 16 floats, made of the vocabulary: the same bits on every CPU with fused multiply-add."""

from __future__ import annotations

import numpy as np

from .jit import helper
from .ops import add, below, div, fma, maximum, minimum, mul, nearest, same, select_if, sub, two_to

LOG2_E = np.float32(1.44269504)
LN2_HIGH, LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
C2, C3, C4, C5, C6, C7 = (np.float32(1 / n) for n in (2, 6, 24, 120, 720, 5040))


@helper
def exp(x):
    """E to the x within 2 ulp; 0 below -87, the largest power of two's neighbourhood above 88."""
    clamped = maximum(minimum(x, same(88.0)), same(-87.0))
    n = nearest(mul(clamped, same(LOG2_E)))
    r = fma(n, same(-LN2_HIGH), clamped)
    r = fma(n, same(-LN2_LOW), r)
    p = fma(r, same(C7), same(C6))
    p = fma(p, r, same(C5))
    p = fma(p, r, same(C4))
    p = fma(p, r, same(C3))
    p = fma(p, r, same(C2))
    p = fma(p, r, same(1.0))
    p = fma(p, r, same(1.0))
    return select_if(below(x, same(-87.0)), same(0.0), mul(p, two_to(n)))


P1, P2, P3, P4, P5 = (np.float32(c) for c in (0.693147004, 0.240222424, 0.0555073358, 0.00967151299, 0.00132647273))
"""Of the polynomial nearest to 2^r within -1/2 .. 1/2, relative to it: 9e-8 at most."""


@helper
def exp2_to_1(x):
    """2 to the x for x of at most 127, within 3 ulp; 0 below -126; 1 of 0 exactly."""
    n = nearest(x)
    r = sub(x, n)
    p = fma(r, same(P5), same(P4))
    p = fma(p, r, same(P3))
    p = fma(p, r, same(P2))
    p = fma(p, r, same(P1))
    p = fma(p, r, same(1.0))
    return select_if(below(x, same(-126.0)), same(0.0), mul(p, two_to(n)))


@helper
def sigmoid(x):
    """1 / (1 + e^-x)."""
    return div(same(1.0), add(same(1.0), exp(sub(same(0.0), x))))


@helper
def silu(x):
    """X * sigmoid(x)."""
    return mul(x, sigmoid(x))


SQRT_8_OVER_PI = np.float32(1.5957691216057308)
CUBIC = np.float32(0.044715)


@helper
def gelu_tanh(x):
    """The tanh form of GELU, written with the sigmoid: (1 + tanh(z)) / 2 == sigmoid(2z)."""
    inner = mul(x, fma(mul(x, x), same(CUBIC), same(1.0)))
    return mul(x, sigmoid(mul(inner, same(SQRT_8_OVER_PI))))


@helper
def relu(x):
    """X where positive, else 0."""
    return maximum(x, same(0.0))


@helper
def tanh(x):
    """2 * sigmoid(2x) - 1."""
    return sub(mul(same(2.0), sigmoid(add(x, x))), same(1.0))
