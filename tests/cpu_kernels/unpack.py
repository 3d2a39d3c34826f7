"""Packed tiles back to weights, in NumPy: the layouts of `cpu_kernels/formats.py` read a second time."""

from __future__ import annotations

import numpy as np

from halfbyte.cpu_kernels.packed import IQ1, IQ2, IQ3_XXS, IQ4, MXFP4
from halfbyte.quant import Planes


def unpacked(family, tiles):
    """f32[16 * tiles, columns] from u8[tiles, steps, step_bytes]."""
    n, steps = tiles.shape[:2]
    values = UNPACK[family](tiles.reshape(n * steps, -1))  # [tile and step, row, column]
    return values.reshape(n, steps, 16, -1).transpose(0, 2, 1, 3).reshape(16 * n, -1)


def halves(step, at):
    """f32[n, 16] of one half a row."""
    return step[:, at : at + 32].copy().view("<f2").astype(np.float32)


def floats(step, at):
    return step[:, at : at + 64].copy().view("<f4")


def rows_of(step, at, count, kind=np.uint8):
    """[n, 16, count] of `count` vectors with one byte a row."""
    return step[:, at : at + 16 * count].reshape(-1, count, 16).transpose(0, 2, 1).view(kind)


def chunks(step, at, count):
    """u8[n, 16, 4 * count] of `count` vectors with four neighbouring bytes a row."""
    return step[:, at : at + 64 * count].reshape(-1, count, 16, 4).transpose(0, 2, 1, 3).reshape(len(step), 16, -1)


def nibbles(step, at):
    plane = chunks(step, at, 4)
    return np.concatenate([plane & 15, plane >> 4], axis=2)


def fifth_bits(step, at):
    """Bit k of the byte of column i belongs to column 4k + i."""
    bits = chunks(step, at, 1)[:, :, None, :] >> np.arange(8, dtype=np.uint8)[:, None] & 1
    return bits.reshape(len(step), 16, 32)


def values(q, scale, offset=None):
    """f32[n, 16, columns] as `Planes` defines them; scales [n, 16] or [n, 16, groups]."""
    n, _, columns = q.shape
    flat = [None if part is None else part.reshape(n * 16, -1) for part in (scale, offset)]
    return Planes(q.astype(np.int16).reshape(n * 16, columns), *flat).values().reshape(n, 16, columns)


def q4_0(step):
    return values(nibbles(step, 32).astype(int) - 8, halves(step, 0))


def q4_1(step):
    return values(nibbles(step, 64), halves(step, 0), halves(step, 32))


def q5_0(step):
    return values((nibbles(step, 96) | fifth_bits(step, 32) << 4).astype(int) - 16, halves(step, 0))


def q5_1(step):
    return values(nibbles(step, 128) | fifth_bits(step, 64) << 4, halves(step, 0), halves(step, 32))


def q8_0(step):
    return values(chunks(step, 32, 8).astype(int) - 128, halves(step, 0))


def k_values(step, q):
    scale = halves(step, 0)[:, :, None] * rows_of(step, 64, 8).astype(np.float32)
    offset = halves(step, 32)[:, :, None] * rows_of(step, 192, 8).astype(np.float32)
    return values(q, scale, offset)


def k_nibbles(step, at):
    planes = [chunks(step, at + 512 * pair, 8) for pair in range(4)]
    return np.concatenate([part for plane in planes for part in (plane & 15, plane >> 4)], axis=2)


def q4_k(step):
    return k_values(step, k_nibbles(step, 320))


def q5_k(step):
    plane = chunks(step, 320, 8)
    fifth = np.concatenate([plane >> group & 1 for group in range(8)], axis=2)
    return k_values(step, k_nibbles(step, 832) | fifth << 4)


def q6_k(step):
    parts = []
    for half in range(2):
        low = [chunks(step, 288 + 1024 * half + 512 * i, 8) for i in range(2)]
        high = chunks(step, 2336 + 512 * half, 8)
        four = (low[0] & 15, low[1] & 15, low[0] >> 4, low[1] >> 4)
        parts += [part | (high >> 2 * group & 3) << 4 for group, part in enumerate(four)]
    scale = halves(step, 0)[:, :, None] * rows_of(step, 32, 16, np.int8).astype(np.float32)
    return values(np.concatenate(parts, axis=2).astype(int) - 32, scale)


def two_bits(step, at):
    planes = [chunks(step, at + 512 * half, 8) >> 2 * quarter & 3 for half in range(2) for quarter in range(4)]
    return np.concatenate(planes, axis=2)


def third_bit(step, at):
    plane = chunks(step, at, 8)
    return np.concatenate([plane >> group & 1 for group in range(8)], axis=2)


def grouped_nibbles(step, at, groups=8):
    return np.concatenate([nibbles(step, at + 256 * group) for group in range(groups)], axis=2)


def q2_k(step):
    packed = rows_of(step, 64, 16)
    scale = halves(step, 0)[:, :, None] * (packed & 15).astype(np.float32)
    return values(two_bits(step, 320), scale, halves(step, 32)[:, :, None] * (packed >> 4).astype(np.float32))


def q3_k(step):
    q = two_bits(step, 800) | third_bit(step, 288) << 2
    return values(q.astype(int) - 4, halves(step, 0)[:, :, None] * rows_of(step, 32, 16, np.int8).astype(np.float32))


def iq4_nl(step):
    return values(np.array(IQ4.values)[nibbles(step, 32)], halves(step, 0))


def iq4_xs(step):
    scale = halves(step, 0)[:, :, None] * rows_of(step, 32, 8, np.int8).astype(np.float32)
    return values(np.array(IQ4.values)[grouped_nibbles(step, 160)], scale)


def mxfp4(step):
    exponent = rows_of(step, 0, 1)[:, :, 0].astype(int)
    return values(np.array(MXFP4.values)[nibbles(step, 16)], np.ldexp(np.float32(1), exponent - 128))


def nvfp4(step):
    """Scales as halves: 4 exponent and 3 mantissa bits, the exponent's zero 8 lower."""
    scale = (rows_of(step, 0, 4).astype(np.uint16) << 7).view(np.float16).astype(np.float32) * np.float32(128)
    return values(np.array(MXFP4.values)[grouped_nibbles(step, 64, 2)], scale)


def odd(step, scales):
    return halves(step, 0)[:, :, None] * (2 * scales + 1).astype(np.float32)


def iq3_s(step):
    return values(2 * grouped_nibbles(step, 160).astype(int) - 15, odd(step, rows_of(step, 32, 8)))


def iq3_xxs(step):
    scale = odd(step, rows_of(step, 32, 8)) * np.float32(0.25)
    return values(np.array(IQ3_XXS.values)[grouped_nibbles(step, 160)], scale)


def three_bits(levels):
    def unpack(step):
        packed = rows_of(step, 32, 8)
        scales = np.stack([packed & 15, packed >> 4], axis=3).reshape(len(step), 16, 16)
        q = np.array(levels.values)[two_bits(step, 672) | third_bit(step, 160) << 2]
        return values(q, odd(step, scales) * np.float32(0.125))

    return unpack


def iq1_s(step):
    packed = rows_of(step, 32, 8)
    shift = np.repeat(1 - 2 * (packed >> 3 & 1).astype(int), 32, axis=2)
    return values(8 * (two_bits(step, 160).astype(int) - 1) + shift, odd(step, packed & 7) * np.float32(0.125))


def tq2_0(step):
    return values(two_bits(step, 32).astype(int) - 1, halves(step, 0))


def q1_0(step):
    bits = np.concatenate([fifth_bits(step, 32 + 64 * group) for group in range(4)], axis=2)
    return values(2 * bits.astype(int) - 1, halves(step, 0))


def f16(step):
    return halves(step, 0)[:, :, None]


def bf16(step):
    return (step.copy().view("<u2").astype(np.uint32) << 16).view(np.float32)[:, :, None]


def f32(step):
    return floats(step, 0)[:, :, None]


FAMILIES = (
    *(q4_0, q4_1, q5_0, q5_1, q8_0, q2_k, q3_k, q4_k, q5_k, q6_k, iq4_nl, iq4_xs, mxfp4, nvfp4),
    *(iq3_s, iq3_xxs, iq1_s, tq2_0, q1_0, f16, bf16, f32),
)
UNPACK = {family.__name__: family for family in FAMILIES} | {"iq2": three_bits(IQ2), "iq1_m": three_bits(IQ1)}
