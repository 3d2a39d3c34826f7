"""bf16: the upper half of a single. Encoding rounds to nearest even; a NaN stays one, made quiet."""

import numpy as np

from .block import BlockFormat, Bytes, Floats


def _decode(blocks: Bytes) -> Floats:
    bits = blocks.view("<u2").astype(np.uint32)
    bits <<= np.uint32(16)
    return bits.view(np.float32)


def _encode(values: Floats) -> Bytes:
    bits = values.view(np.uint32)
    upper = bits >> np.uint32(16)
    # Half a step less one, plus one where the kept part is odd. Only a NaN could carry out of 32 bits.
    rounded = (bits + (np.uint32(0x7FFF) + (upper & np.uint32(1)))) >> np.uint32(16)
    return np.where(np.isnan(values), upper | np.uint32(0x40), rounded).astype("<u2").view("u1")


BF16 = BlockFormat("bf16", 30, 1, 2, decode_blocks=_decode, encode_blocks=_encode)
