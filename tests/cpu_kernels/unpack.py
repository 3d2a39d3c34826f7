"""Packed tiles back to weights, in NumPy: the layouts of `cpu_kernels/formats.py` read a second time."""

from __future__ import annotations

import numpy as np

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
    return values(q, scale, -offset)


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


def i8(step):
    scale, offset = (np.stack([floats(step, at), floats(step, at + 64)], axis=2) for at in (0, 128))
    return values(chunks(step, 256, 8).astype(int) - 128, scale, offset)


def f16(step):
    return halves(step, 0)[:, :, None]


def bf16(step):
    return (step.copy().view("<u2").astype(np.uint32) << 16).view(np.float32)[:, :, None]


def f32(step):
    return floats(step, 0)[:, :, None]


FAMILIES = (q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k, i8, f16, bf16, f32)
UNPACK = {family.__name__: family for family in FAMILIES}
