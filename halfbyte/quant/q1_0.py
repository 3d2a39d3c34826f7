"""q1_0: 128 signs, one scale."""

from .bits import flips, half
from .block import BlockFormat, Bytes, Planes


def _planes(blocks: Bytes) -> Planes:
    return Planes(-flips(blocks[:, 2:]), half(blocks, 0))


Q1_0 = BlockFormat("q1_0", 41, 128, 18, planes=_planes)
