"""Rotary embedding: angles once a step and table, then a turn of every head."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .instruction import LAYOUTS
from .instruction import state as word
from .jit import helper
from .memory import bits_to_float, load_double, load_float, load_i32, load_i64, store_float

INV_FREQ, PAIRS, MAGNITUDE, ANGLES_OUT = LAYOUTS["angles"].offsets()
X, OUT, ANGLES, ROPE_PAIRS, HEADS, HEAD_SIZE, STRIDE = LAYOUTS["rope"].offsets()
TOKENS, POSITIONS = word("tokens"), word("positions")

TWO_OVER_PI = 2 / np.pi
HALF_PI_HIGH, HALF_PI_LOW = 1.5707963267341256, 6.077100506506192e-11
"""Pi/2 in two parts: the product of the first with a whole number below 2^20 is exact."""


@helper
def _sine_cosine(angle):
    """Sine and cosine: Taylor series on a quarter turn in double precision, below 1e-11 up to a million radians."""
    turns = np.rint(angle * TWO_OVER_PI)
    r = (angle - turns * HALF_PI_HIGH) - turns * HALF_PI_LOW
    z = r * r
    sine = r * (1 - z / 6 * (1 - z / 20 * (1 - z / 42 * (1 - z / 72 * (1 - z / 110 * (1 - z / 156))))))
    cosine = 1 - z / 2 * (1 - z / 12 * (1 - z / 30 * (1 - z / 56 * (1 - z / 90 * (1 - z / 132)))))
    quadrant = np.int64(turns) & 3
    if quadrant == 1:
        return cosine, -sine
    if quadrant == 2:
        return -sine, -cosine
    if quadrant == 3:
        return -cosine, sine
    return sine, cosine


def angles(instr, state, tid, nth):
    """`out[t, i]` = sine and cosine of the angle of pair i at the token's position, times the magnitude."""
    pairs, magnitude = load_i64(instr + PAIRS), bits_to_float(load_i64(instr + MAGNITUDE))
    for token in range(tid, load_i64(state + TOKENS), nth):
        position = load_i32(load_i64(state + POSITIONS) + 4 * token)
        out = load_i64(instr + ANGLES_OUT) + 8 * token * pairs
        for i in range(pairs):
            frequency = load_double(load_i64(instr + INV_FREQ) + 8 * i)
            sine, cosine = _sine_cosine(np.float64(position) * frequency)
            store_float(out + 8 * i, np.float32(sine) * magnitude)
            store_float(out + 8 * i + 4, np.float32(cosine) * magnitude)


@helper
def _turn(x, out, angle, first, second):
    """Turn the pair of channels `first`, `second` (byte offsets)."""
    sine, cosine = load_float(angle), load_float(angle + 4)
    a, b = load_float(x + first), load_float(x + second)
    store_float(out + first, a * cosine - b * sine)
    store_float(out + second, a * sine + b * cosine)


def _kernel(step: int) -> Callable[..., None]:
    def rope(instr, state, tid, nth):
        stride, heads = load_i64(instr + STRIDE), load_i64(instr + HEADS)
        head_size, pairs = load_i64(instr + HEAD_SIZE), load_i64(instr + ROPE_PAIRS)
        half = 4 if step == 2 else 4 * pairs
        for token in range(tid, load_i64(state + TOKENS), nth):
            angle = load_i64(instr + ANGLES) + 8 * token * pairs
            for head in range(heads):
                offset = token * stride + 4 * head * head_size
                x, out = load_i64(instr + X) + offset, load_i64(instr + OUT) + offset
                for i in range(pairs):
                    _turn(x, out, angle + 8 * i, 4 * step * i, 4 * step * i + half)
                for c in range(2 * pairs, head_size):
                    store_float(out + 4 * c, load_float(x + 4 * c))

    return rope


KERNELS = {"angles": angles, "rope_norm": _kernel(2), "rope_neox": _kernel(1)}
