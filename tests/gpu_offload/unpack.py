"""Packed tiles back to weights, by the words of `kernels/packed.cuh` and slowly."""

from __future__ import annotations

from functools import partial

import numpy as np

from halfbyte.quant.e2m1 import E2M1
from halfbyte.quant.iq4_nl import LEVELS as IQ4

IQ3_XXS = np.array([-62, -52, -44, -36, -28, -20, -12, -4, 4, 12, 20, 28, 36, 44, 52, 62])
IQ2 = np.array([-43, -25, -8, 8, 25, 43, 0, 0])
IQ1 = np.array([-9, -7, -1, 1, 7, 9, 0, 0])


def in_order(codes):
    """[n, pair, lane, group, half, row >= 8, i] as [n, 16 rows, columns]."""
    n, pairs = codes.shape[:2]
    parts = codes.reshape(n, pairs, 8, 4, 2, 2, 2, 4)  # n pair g t group half upper i
    return parts.transpose(0, 6, 2, 1, 4, 5, 3, 7).reshape(n, 16, pairs * 64)


def per_lane(data, *shape):
    return data.reshape(*data.shape[:2], 32, *shape)


def nibbles(data):
    words = per_lane(data, 2, 1, 2, 4)
    return in_order(np.concatenate([words & 15, words >> 4], axis=4))


def looked_up(levels, data):
    words = np.ascontiguousarray(per_lane(data, 16)).view("<u4").reshape(*data.shape[:2], 32, 2, 1, 2, 1)
    shifts = (16 * np.arange(2)[:, None, None] + 4 * np.arange(4)).astype(np.uint32)
    return levels[in_order(words >> shifts & 15)]


def two_bits(data):
    shifts = 2 * np.arange(4, dtype=np.uint8).reshape(2, 2, 1)
    return in_order(per_lane(data, 2, 1, 1, 4) >> shifts & 3)


def one_bit(data):
    shifts = np.arange(8, dtype=np.uint8).reshape(2, 2, 2, 1)
    return in_order(per_lane(data, 1, 1, 1, 4) >> shifts & 1)


def whole_bytes(data):
    parts = data.reshape(*data.shape[:2], 2, 32, 2, 2, 4)
    return in_order(np.moveaxis(parts, 2, 3)).view(np.int8)


def both(low, n_bytes, bits, high, data):
    """Codes whose upper bits lie in a plane of their own."""
    return low(data[:, :, :n_bytes]) | high(data[:, :, n_bytes:]) << bits


def three_bits_looked_up(levels, data):
    return levels[both(two_bits, 256, 2, one_bit, data)]


FIVE = partial(both, nibbles, 512, 4, one_bit)


# --- scales: bytes [n, BYTES] to scale and offset f32[n, 16, parts of a row] ------------------------------------------


def halves(data, *shape):
    return np.ascontiguousarray(data).view("<f2").astype(np.float32).reshape(len(data), 16, *shape)


def half_each(middle, data):
    d = halves(data, 2)
    return d, d * np.float32(-middle / 2)


def two_halves_each(data):
    return halves(data[:, :64], 2), halves(data[:, 64:], 2)


def power_each(data):
    d = np.ldexp(np.float32(1), data.reshape(-1, 16, 2).astype(np.int32) - 128)
    return d, 0 * d


def small_float_each(data):
    exponent, mantissa = np.divmod(data.reshape(-1, 16, 4).astype(np.int32), 8)
    d = np.ldexp((mantissa + 8 * (exponent > 0)).astype(np.float32), np.maximum(exponent, 1) - 11)
    return d, 0 * d


def two_bytes_each(data):
    scales, offsets = data[:, 64:192].reshape(-1, 16, 8), data[:, 192:].reshape(-1, 16, 8)
    return halves(data[:, :32], 1) * scales, -(halves(data[:, 32:64], 1) * offsets)


def two_nibbles_each(data):
    both = data[:, 64:].reshape(-1, 16, 16)
    return halves(data[:, :32], 1) * (both & 15), -(halves(data[:, 32:64], 1) * (both >> 4))


def byte_each(middle, data, parts=1):
    d = halves(data[:, :32], 1) * (data[:, 32:].view(np.int8).reshape(len(data), 16, -1) / np.float32(parts))
    return d, d * np.float32(-middle / 2)


def shifted_byte_each(data):
    bytes_ = data[:, 32:].reshape(-1, 16, 8)
    d = halves(data[:, :32], 1) * (bytes_ & 127)
    return d, d * np.where(bytes_ & 128, np.float32(-1.125), np.float32(-0.875))


def half_for_many(factor, middle, data):
    d = halves(data, data.shape[1] // 32) * np.float32(factor)
    return d, d * np.float32(-middle / 2)


# --- families: pairs of groups in a step, bytes of scales, and what they mean -----------------------------------------

LAYOUTS = {
    "Q4_0": (1, 64, partial(half_each, 16), nibbles),
    "Q4_1": (1, 128, two_halves_each, nibbles),
    "Q5_0": (1, 64, partial(half_each, 32), FIVE),
    "Q5_1": (1, 128, two_halves_each, FIVE),
    "Q8_0": (1, 64, partial(half_each, 0), whole_bytes),
    "Q2_K": (4, 320, two_nibbles_each, two_bits),
    "Q3_K": (4, 288, partial(byte_each, 8), partial(both, two_bits, 256, 2, one_bit)),
    "Q4_K": (4, 320, two_bytes_each, nibbles),
    "Q5_K": (4, 320, two_bytes_each, FIVE),
    "Q6_K": (4, 288, partial(byte_each, 64), partial(both, nibbles, 512, 4, two_bits)),
    "IQ4_NL": (1, 64, partial(half_each, 0), partial(looked_up, IQ4)),
    "IQ4_XS": (4, 160, partial(byte_each, 0), partial(looked_up, IQ4)),
    "MXFP4": (1, 32, power_each, partial(looked_up, E2M1)),
    "NVFP4": (1, 64, small_float_each, partial(looked_up, E2M1)),
    "IQ3_S": (4, 160, partial(byte_each, 15), nibbles),
    "IQ3_XXS": (4, 160, partial(byte_each, 0, parts=4), partial(looked_up, IQ3_XXS)),
    "IQ2": (4, 288, partial(byte_each, 0, parts=8), partial(three_bits_looked_up, IQ2)),
    "IQ1_M": (4, 288, partial(byte_each, 0, parts=8), partial(three_bits_looked_up, IQ1)),
    "IQ1_S": (4, 160, shifted_byte_each, two_bits),
    "TQ2_0": (4, 32, partial(half_for_many, 1, 2), two_bits),
    "Q1_0": (4, 64, partial(half_for_many, 2, 1), one_bit),
}


def unpacked(family, tiles):
    """f32[n * 16, steps * columns] of u8[n, steps, step_bytes]: scale * code + offset, each rounded once."""
    pairs, scale_bytes, scales_of, codes_of = LAYOUTS[family]
    n, steps, _ = tiles.shape
    data = tiles.reshape(n * steps, -1)
    codes = codes_of(data[:, scale_bytes:].reshape(len(data), pairs, -1))
    scale, offset = scales_of(data[:, :scale_bytes])
    grouped = codes.reshape(*scale.shape, -1).astype(np.float32) * scale[..., None] + offset[..., None]
    values = grouped.reshape(n, steps, 16, -1).transpose(0, 2, 1, 3)
    return values.reshape(n * 16, -1)
