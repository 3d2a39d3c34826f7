"""q4_k: 256 codes of 4 bits; each 32 have a scale and a minimum of 6 bits, multiples of two halves."""

from .bits import half, k_scales, signed, unpack
from .block import BlockFormat, Bytes, Planes


def _planes(blocks: Bytes) -> Planes:
    scales, minima = k_scales(blocks[:, 4:16])
    q = signed(unpack(blocks[:, 16:], 4, 32), 0)
    return Planes(q, half(blocks, 0) * scales, -(half(blocks, 2) * minima))


Q4_K = BlockFormat("q4_k", 12, 256, 144, planes=_planes)
