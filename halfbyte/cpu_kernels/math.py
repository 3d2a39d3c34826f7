"""Functions of 16 floats, made of the vocabulary: the same bits on every CPU with fused multiply-add."""

from __future__ import annotations

import numpy as np

from .jit import helper
from .ops import absolute, add, below, div, fma, maximum, minimum, mul, nearest, same, select_if, sub, two_to

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


ERF_ENDS = np.float32(3.92)
"""From here on the error function is 1 to the last bit."""
A0, A1, A2, A3, A4, A5 = (
    np.float32(c) for c in (1.12837902, 0.192764194, 0.0530604857, 3.86832936e-3, 2.87478842e-4, 2.03472649e-6)
)
B1, B2, B3, B4, B5 = (np.float32(c) for c in (0.504164485, 0.115084663, 0.0151723005, 1.18811449e-3, 3.80705237e-5))
"""Of the two polynomials in z^2 whose quotient, times z, is nearest to erf up to there: 1.6e-8 away at most."""


@helper
def erf(z):
    """The error function within 1.5e-7."""
    t = mul(z, z)
    a = fma(t, same(A5), same(A4))
    a = fma(a, t, same(A3))
    a = fma(a, t, same(A2))
    a = fma(a, t, same(A1))
    a = fma(a, t, same(A0))
    b = fma(t, same(B5), same(B4))
    b = fma(b, t, same(B3))
    b = fma(b, t, same(B2))
    b = fma(b, t, same(B1))
    b = fma(b, t, same(1.0))
    sign = maximum(minimum(z, same(1.0)), same(-1.0))
    return select_if(below(absolute(z), same(ERF_ENDS)), div(mul(z, a), b), sign)


SQRT_HALF = np.float32(0.7071067811865476)


@helper
def gelu(x):
    """GELU itself, x times the share of a normal distribution below x."""
    half = mul(x, same(0.5))
    return fma(half, erf(mul(x, same(SQRT_HALF))), half)


OAI_SLOPE, OAI_LIMIT = np.float32(1.702), np.float32(7)


@helper
def swiglu_oai(gate, up):
    """`gate * sigmoid(1.702 gate) * (up + 1)`, gate at most 7, up from -7 to 7."""
    gate = minimum(gate, same(OAI_LIMIT))
    up = maximum(minimum(up, same(OAI_LIMIT)), same(-OAI_LIMIT))
    return mul(mul(gate, sigmoid(mul(gate, same(OAI_SLOPE)))), add(up, same(1.0)))


@helper
def relu(x):
    """X where positive, else 0."""
    return maximum(x, same(0.0))


@helper
def tanh(x):
    """2 * sigmoid(2x) - 1."""
    return sub(mul(same(2.0), sigmoid(add(x, x))), same(1.0))
