"""q2_k: 256 codes of 2 bits; each 16 have a scale and a minimum of 4 bits, multiples of two halves."""

from .bits import half, signed, unpack
from .block import BlockFormat, Bytes, Planes


def _planes(blocks: Bytes) -> Planes:
    scales = blocks[:, :16]
    q = signed(unpack(blocks[:, 16:80], 2, 32), 0)
    return Planes(q, half(blocks, 80) * (scales & 15), -(half(blocks, 82) * (scales >> 4)))


Q2_K = BlockFormat("q2_k", 10, 256, 84, planes=_planes)
