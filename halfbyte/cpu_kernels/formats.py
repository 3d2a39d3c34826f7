"""Packed weights: how 16 rows of a tensor lie in memory, as integers with scales.

Two functions a format: `<name>_chunks(w, group)` gives the unsigned bytes of 32 columns as eight vectors of 16 rows x 4
columns, `<name>_scales(w, group)` the scale and the offset of each row, such that `weight == scale * byte + offset`;
where the halves of a group have scales of their own, it gives two of each. `w` is the address of a packed step, which
holds as many groups as a block of the format. Formats of floats have one function, the 16 rows of a column.
"""

from __future__ import annotations

from .jit import helper
from .ops import fma, load_bf16, load_f16, load_f32, load_i8_as_f32, load_u8_as_f32, mul, same, sub
from .tiles import add_1_bit, add_2_bits, add_sixteens, load_bytes, nibbles, nibbles_at, whole_bytes


@helper
def _symmetric(scale, middle):
    """Bytes stand `middle` above their value."""
    return scale, mul(scale, same(-middle))


# --- blocks of 32: scales, (offsets), (fifth bits), nibbles ----------------------------------------------------------


@helper
def q4_0_chunks(w, group):
    return nibbles(w + 32)


@helper
def q4_0_scales(w, group):
    return _symmetric(load_f16(w), 8.0)


@helper
def q4_1_chunks(w, group):
    return nibbles(w + 64)


@helper
def q4_1_scales(w, group):
    return load_f16(w), load_f16(w + 32)


@helper
def q5_0_chunks(w, group):
    return add_sixteens(nibbles(w + 96), load_bytes(w + 32))


@helper
def q5_0_scales(w, group):
    return _symmetric(load_f16(w), 16.0)


@helper
def q5_1_chunks(w, group):
    return add_sixteens(nibbles(w + 128), load_bytes(w + 64))


@helper
def q5_1_scales(w, group):
    return load_f16(w), load_f16(w + 32)


@helper
def q8_0_chunks(w, group):
    return whole_bytes(w + 32)


@helper
def q8_0_scales(w, group):
    return _symmetric(load_f16(w), 128.0)


# --- blocks of 256: two halves a row, scales and offsets of 8 groups, planes -----------------------------------------


@helper
def q4_k_chunks(w, group):
    return nibbles_at(w + 320 + 512 * (group // 2), 4 * (group % 2))


@helper
def q4_k_scales(w, group):
    scale = mul(load_f16(w), load_u8_as_f32(w + 64 + 16 * group))
    offset = mul(load_f16(w + 32), load_u8_as_f32(w + 192 + 16 * group))
    return scale, sub(same(0.0), offset)


@helper
def q5_k_chunks(w, group):
    return add_1_bit(nibbles_at(w + 832 + 512 * (group // 2), 4 * (group % 2)), w + 320, group)


@helper
def q5_k_scales(w, group):
    return q4_k_scales(w, group)


@helper
def q6_k_chunks(w, group):
    half, quarter = group // 4, group % 4
    low = nibbles_at(w + 288 + 1024 * half + 512 * (quarter % 2), 4 * (quarter // 2))
    return add_2_bits(low, w + 2336 + 512 * half, 2 * quarter)


@helper
def q6_k_scales(w, group):
    first = mul(load_f16(w), load_i8_as_f32(w + 32 + 32 * group))
    second = mul(load_f16(w), load_i8_as_f32(w + 48 + 32 * group))
    return first, mul(first, same(-32.0)), second, mul(second, same(-32.0))


# --- whatever has integers and scales: bytes 128 above their value, scales and offsets every 16 columns --------------


@helper
def i8_chunks(w, group):
    return whole_bytes(w + 256)


@helper
def i8_scales(w, group):
    first, second = load_f32(w), load_f32(w + 64)
    return first, fma(first, same(-128.0), load_f32(w + 128)), second, fma(second, same(-128.0), load_f32(w + 192))


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
