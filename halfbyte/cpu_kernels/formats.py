"""Packed weights: how 16 rows of a tensor lie in memory, as integers with scales.

Two functions a format: `<name>_chunks(w, group)` gives the unsigned bytes of 32 columns as eight vectors of 16 rows x 4
columns, `<name>_scales(w, group)` the scale and the offset of each row, such that `weight == scale * byte + offset`;
where the halves of a group have scales of their own, it gives two of each. `w` is the address of a packed step, which
holds as many groups as a block of the format. Formats of floats have one function, the 16 rows of a column.
"""

from __future__ import annotations

from typing import Any

from . import level_formats
from .fields import (
    add_1_bit_at_2,
    add_1_bit_at_4,
    add_2_bits_at_4,
    add_sixteens,
    bits,
    nibbles,
    take_2_bits,
    take_4_bits,
    whole_bytes,
)
from .jit import helper
from .ops import (
    load_bf16,
    load_bits_as_f32,
    load_f16,
    load_f32,
    load_i8_as_f32,
    load_u8_as_f32,
    mul,
    same,
)
from .scales import symmetric, symmetric_halves

# --- blocks of 32: scales, (offsets), (fifth bits), nibbles ----------------------------------------------------------


@helper
def q4_0_chunks(w, group):
    return nibbles(w + 32)


@helper
def q4_0_scales(w, group):
    return symmetric(load_f16(w), 8.0)


@helper
def q4_1_chunks(w, group):
    return nibbles(w + 64)


@helper
def q4_1_scales(w, group):
    return load_f16(w), load_f16(w + 32)


@helper
def q5_0_chunks(w, group):
    return add_sixteens(nibbles(w + 96), w + 32)


@helper
def q5_0_scales(w, group):
    return symmetric(load_f16(w), 16.0)


@helper
def q5_1_chunks(w, group):
    return add_sixteens(nibbles(w + 128), w + 64)


@helper
def q5_1_scales(w, group):
    return load_f16(w), load_f16(w + 32)


@helper
def q8_0_chunks(w, group):
    return whole_bytes(w + 32)


@helper
def q8_0_scales(w, group):
    return symmetric(load_f16(w), 128.0)


# --- blocks of 256: two halves a row, scales and offsets of 8 groups, planes -----------------------------------------


@helper
def q4_k_chunks(w, group):
    return take_4_bits(w + 320 + 512 * (group // 2), 4 * (group % 2))


@helper
def q4_k_scales(w, group):
    scale = mul(load_f16(w), load_u8_as_f32(w + 64 + 16 * group))
    offset = mul(load_f16(w + 32), load_u8_as_f32(w + 192 + 16 * group))
    return scale, offset


@helper
def q5_k_chunks(w, group):
    return add_1_bit_at_4(take_4_bits(w + 832 + 512 * (group // 2), 4 * (group % 2)), w + 320, group)


@helper
def q5_k_scales(w, group):
    return q4_k_scales(w, group)


@helper
def q6_k_chunks(w, group):
    half, quarter = group // 4, group % 4
    low = take_4_bits(w + 288 + 1024 * half + 512 * (quarter % 2), 4 * (quarter // 2))
    return add_2_bits_at_4(low, w + 2336 + 512 * half, 2 * quarter)


@helper
def q6_k_scales(w, group):
    first = mul(load_f16(w), load_i8_as_f32(w + 32 + 32 * group))
    second = mul(load_f16(w), load_i8_as_f32(w + 48 + 32 * group))
    return symmetric_halves(first, second, 32.0)


@helper
def q2_k_chunks(w, group):
    return take_2_bits(w + 320 + 512 * (group // 4), 2 * (group % 4))


@helper
def q2_k_scales(w, group):
    scale, minimum, packed = load_f16(w), load_f16(w + 32), w + 64 + 32 * group
    first, second = load_bits_as_f32(packed, 0, 4), load_bits_as_f32(packed + 16, 0, 4)
    third, fourth = load_bits_as_f32(packed, 4, 4), load_bits_as_f32(packed + 16, 4, 4)
    return mul(scale, first), mul(minimum, third), mul(scale, second), mul(minimum, fourth)


@helper
def q3_k_chunks(w, group):
    return add_1_bit_at_2(take_2_bits(w + 800 + 512 * (group // 4), 2 * (group % 4)), w + 288, group)


@helper
def q3_k_scales(w, group):
    scale = load_f16(w)
    first, second = load_i8_as_f32(w + 32 + 32 * group), load_i8_as_f32(w + 48 + 32 * group)
    return symmetric_halves(mul(scale, first), mul(scale, second), 4.0)


# --- three levels, two levels -----------------------------------------------------------------------------------------


@helper
def tq2_0_chunks(w, group):
    return take_2_bits(w + 32 + 512 * (group // 4), 2 * (group % 4))


@helper
def tq2_0_scales(w, group):
    return symmetric(load_f16(w), 1.0)


@helper
def q1_0_chunks(w, group):
    return bits(w + 32 + 64 * group)


@helper
def q1_0_scales(w, group):
    return symmetric(mul(load_f16(w), same(2.0)), 0.5)


# --- floats ----------------------------------------------------------------------------------------------------------


@helper
def f16_column(w):
    return load_f16(w)


@helper
def bf16_column(w):
    return load_bf16(w)


@helper
def f32_column(w):
    return load_f32(w)


def unpackers(family: str) -> tuple[Any, Any]:
    """The `chunks` and `scales` functions of a family whose activations are quantized."""
    found = vars(level_formats) | globals()
    return found[f"{family}_chunks"], found[f"{family}_scales"]
