"""f16: IEEE half precision. Encoding rounds to nearest even; beyond 65504 it gives infinity."""

import numpy as np

from .block import BlockFormat, Bytes, Floats


def _decode(blocks: Bytes) -> Floats:
    return blocks.view("<f2").astype(np.float32)


def _encode(values: Floats) -> Bytes:
    with np.errstate(over="ignore"):
        return values.astype("<f2").view("u1")


F16 = BlockFormat("f16", 1, 1, 2, decode_blocks=_decode, encode_blocks=_encode)
