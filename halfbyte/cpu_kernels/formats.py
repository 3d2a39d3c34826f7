"""Packed weights: how 16 rows of a tensor lie in memory, and how a tile of tokens is multiplied with them.

One function a family: `step(acc, w, x, sums, stride)` adds the products of `columns` columns to a tile of 16-row
accumulators. `w` is the packed step, `x` the first token's int8 (or float32) activations, `sums` its records of four
floats a group of 32 columns: scale, scaled sum of the group, of its first and of its second half. Token rows are
`stride` bytes apart in `x` and `stride / 2` in `sums`. The float operations of a token are the same, in the same
order, for every tile length: that is what makes the vector and the matrix kernel bit-equal.
"""

from __future__ import annotations

from .jit import helper
from .ops import fma, load_bf16, load_f16, load_f32, load_i8_as_f32, load_u8_as_f32, mul, same, sub
from .tiles import (
    add_1_bit,
    add_2_bits,
    add_products,
    add_scaled,
    add_sixteens,
    dot_small,
    dot_wide,
    high_nibbles,
    load_bytes,
    low_nibbles,
    nibbles,
    whole_bytes,
)

SCALE, SUM, FIRST_SUM, SECOND_SUM, RECORD = 0, 4, 8, 12, 16


@helper
def _scaled_and_shifted(acc, dots, scale, offset, sums, stride):
    """`acc += scale * dots + offset * sum` of one group of 32 columns."""
    acc = add_products(acc, dots, scale, sums + SCALE, stride // 2)
    return add_scaled(acc, offset, sums + SUM, stride // 2)


# --- blocks of 32: scales, (offsets), (fifth bits), nibbles ----------------------------------------------------------


@helper
def q4_0(acc, w, x, sums, stride):
    scale = load_f16(w)
    dots = dot_small(acc, nibbles(w + 32), x, stride)
    return _scaled_and_shifted(acc, dots, scale, mul(scale, same(-8.0)), sums, stride)


@helper
def q4_1(acc, w, x, sums, stride):
    dots = dot_small(acc, nibbles(w + 64), x, stride)
    return _scaled_and_shifted(acc, dots, load_f16(w), load_f16(w + 32), sums, stride)


@helper
def q5_0(acc, w, x, sums, stride):
    scale = load_f16(w)
    dots = dot_small(acc, add_sixteens(nibbles(w + 96), load_bytes(w + 32)), x, stride)
    return _scaled_and_shifted(acc, dots, scale, mul(scale, same(-16.0)), sums, stride)


@helper
def q5_1(acc, w, x, sums, stride):
    dots = dot_small(acc, add_sixteens(nibbles(w + 128), load_bytes(w + 64)), x, stride)
    return _scaled_and_shifted(acc, dots, load_f16(w), load_f16(w + 32), sums, stride)


@helper
def q8_0(acc, w, x, sums, stride):
    scale = load_f16(w)
    dots = dot_wide(acc, whole_bytes(w + 32), x, stride)
    return _scaled_and_shifted(acc, dots, scale, mul(scale, same(-128.0)), sums, stride)


# --- blocks of 256: two halves per row, scales and offsets of 8 groups, planes ---------------------------------------


@helper
def _k_group(acc, w, dots, group, sums, stride):
    scale = mul(load_f16(w), load_u8_as_f32(w + 64 + 16 * group))
    offset = mul(load_f16(w + 32), load_u8_as_f32(w + 192 + 16 * group))
    return _scaled_and_shifted(acc, dots, scale, sub(same(0.0), offset), sums, stride)


@helper
def q4_k(acc, w, x, sums, stride):
    for pair in range(4):
        plane = w + 320 + 512 * pair
        dots = dot_small(acc, low_nibbles(plane), x, stride)
        acc = _k_group(acc, w, dots, 2 * pair, sums, stride)
        dots = dot_small(acc, high_nibbles(plane), x + 32, stride)
        acc = _k_group(acc, w, dots, 2 * pair + 1, sums + RECORD, stride)
        x, sums = x + 64, sums + 2 * RECORD
    return acc


@helper
def q5_k(acc, w, x, sums, stride):
    fifth = w + 320
    for pair in range(4):
        plane = w + 832 + 512 * pair
        dots = dot_small(acc, add_1_bit(low_nibbles(plane), fifth, 2 * pair), x, stride)
        acc = _k_group(acc, w, dots, 2 * pair, sums, stride)
        dots = dot_small(acc, add_1_bit(high_nibbles(plane), fifth, 2 * pair + 1), x + 32, stride)
        acc = _k_group(acc, w, dots, 2 * pair + 1, sums + RECORD, stride)
        x, sums = x + 64, sums + 2 * RECORD
    return acc


@helper
def _two_halves(acc, chunks, first, second, x, sums, stride):
    """A group of 32 columns whose halves have scales of their own; bytes stand 32 above their value."""
    below = same(-32.0)
    acc = add_products(acc, dot_small(acc, chunks[:4], x, stride), first, sums + SCALE, stride // 2)
    acc = add_scaled(acc, mul(first, below), sums + FIRST_SUM, stride // 2)
    acc = add_products(acc, dot_small(acc, chunks[4:], x + 16, stride), second, sums + SCALE, stride // 2)
    return add_scaled(acc, mul(second, below), sums + SECOND_SUM, stride // 2)


@helper
def q6_k(acc, w, x, sums, stride):
    for half in range(2):
        low, high, scales = w + 288 + 1024 * half, w + 2336 + 512 * half, w + 32 + 128 * half
        for group in range(4):
            plane = low + 512 * (group % 2)
            first = mul(load_f16(w), load_i8_as_f32(scales + 32 * group))
            second = mul(load_f16(w), load_i8_as_f32(scales + 32 * group + 16))
            if group < 2:
                chunks = add_2_bits(low_nibbles(plane), high, 2 * group)
            else:
                chunks = add_2_bits(high_nibbles(plane), high, 2 * group)
            acc = _two_halves(acc, chunks, first, second, x, sums, stride)
            x, sums = x + 32, sums + RECORD
    return acc


# --- whatever has integers and scales: bytes, with a float scale and offset every 16 columns -------------------------


@helper
def _eight_bit_half(acc, chunks, scale, offset, x, sums, half_sum, stride):
    acc = add_products(acc, dot_wide(acc, chunks, x, stride), scale, sums + SCALE, stride // 2)
    return add_scaled(acc, fma(scale, same(-128.0), offset), sums + half_sum, stride // 2)


@helper
def i8(acc, w, x, sums, stride):
    chunks = whole_bytes(w + 256)
    acc = _eight_bit_half(acc, chunks[:4], load_f32(w), load_f32(w + 128), x, sums, FIRST_SUM, stride)
    return _eight_bit_half(acc, chunks[4:], load_f32(w + 64), load_f32(w + 192), x + 16, sums, SECOND_SUM, stride)


# --- floats: one column of 16 rows at a time -------------------------------------------------------------------------


@helper
def f16(acc, w, x, sums, stride):
    return add_scaled(acc, load_f16(w), x, stride)


@helper
def bf16(acc, w, x, sums, stride):
    return add_scaled(acc, load_bf16(w), x, stride)


@helper
def f32(acc, w, x, sums, stride):
    return add_scaled(acc, load_f32(w), x, stride)
