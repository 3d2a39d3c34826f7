"""q5_k: as q4_k with a fifth bit for each code, kept apart."""

from .bits import half, join, k_scales, signed, unpack
from .block import BlockFormat, Bytes, Planes


def _planes(blocks: Bytes) -> Planes:
    scales, minima = k_scales(blocks[:, 4:16])
    q = join(unpack(blocks[:, 48:], 4, 32), unpack(blocks[:, 16:48], 1, 32), 4)
    return Planes(signed(q, 0), half(blocks, 0) * scales, -(half(blocks, 2) * minima))


Q5_K = BlockFormat("q5_k", 13, 256, 176, planes=_planes)
