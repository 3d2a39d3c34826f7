"""Random weights of every format, and what a device made of them."""

from __future__ import annotations

import numpy as np

from halfbyte.gpu_offload.families import FAMILIES
from halfbyte.model.backend import Weight
from halfbyte.quant import FORMATS
from tests.gpu_offload.unpack import unpacked
from tests.quant.random_blocks import random_blocks

FORMATS_OF_DEVICES = [name for name in FAMILIES if not FAMILIES[name].plain]
PLAIN = [name for name in FAMILIES if FAMILIES[name].plain]


def random_weight(name, rows, columns, seed=0, called="w"):
    format = FORMATS[name]
    rng = np.random.default_rng([seed, rows, columns, *name.encode()])
    blocks = random_blocks(format, rows * columns // format.block_len, rng)
    return Weight(called, format, (rows, columns), blocks.reshape(rows, -1))


def odd_columns(name):
    """Columns that fill no last step where blocks are shorter than one."""
    return {32: 224, 64: 192, 128: 384, 256: 512, 1: 40}[FORMATS[name].block_len]


def bytes_of(device, matrix):
    """u8[experts, n_bytes]."""
    out = np.empty((matrix.experts, matrix.n_bytes), np.uint8)
    device.copy_out(out, matrix.address)
    device.synchronize()
    return out


def values_of(device, matrix):
    """f32[experts, rows of whole tiles, columns of whole steps] of a matrix in tiles."""
    steps = -(-matrix.columns // matrix.family.columns)
    tiles = bytes_of(device, matrix).reshape(-1, steps, matrix.family.step_bytes)
    return unpacked(matrix.family.name, tiles).reshape(matrix.experts, -1, steps * matrix.family.columns)
