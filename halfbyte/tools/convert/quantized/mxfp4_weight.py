"""`mxfp4_weight`: 4-bit floats, two to a byte, 32 share a power of two: blocks of GGUF but for the order of nibbles."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ....quant.block import Bytes
from ..tensor_source import SourceTensor
from .stored import Stored, wrong
from .weight import QuantizedWeight


def mxfp4_weight(stored: Stored, name: str, packed: SourceTensor, scale: SourceTensor) -> QuantizedWeight:
    """As blocks of a GGUF file, of `packed` u8[..., 16] or flat u8[N, M / 2] and a power of two for each 32 weights."""
    outer, groups = scale.shape[:-1], math.prod(scale.shape[-1:])
    if not outer or min(scale.shape) < 1 or packed.shape not in ((*scale.shape, 16), (*outer, groups * 16)):
        raise wrong(packed, f"has shape {list(packed.shape)}, but its scales {scale.name!r} {list(scale.shape)}")
    tensor = SourceTensor(name, "MXFP4", (*outer, groups * 32), packed.path)
    return QuantizedWeight(tensor, (packed.name, scale.name), partial(_blocks, stored, packed, scale))


def _blocks(stored: Stored, packed: SourceTensor, scale: SourceTensor, start: int, stop: int) -> Bytes:
    """u8[..., groups * 17]. A byte is stored with neighbours and written with weights that are 16 apart."""
    powers = stored.read(scale, start, stop)
    if (powers == 255).any():
        raise wrong(scale, "holds scales that are no numbers")
    pairs = stored.read(packed, start, stop).reshape(-1, 16)
    first, second = pairs[:, :8], pairs[:, 8:]
    blocks = np.empty((len(pairs), 17), np.uint8)
    blocks[:, 0] = powers.reshape(-1)
    blocks[:, 1::2] = first & np.uint8(15) | second << np.uint8(4)
    blocks[:, 2::2] = first >> np.uint8(4) | second & np.uint8(0xF0)
    return blocks.reshape(*powers.shape[:-1], powers.shape[-1] * 17)
