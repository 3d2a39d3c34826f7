"""tq2_0: 256 codes of 2 bits around 1, meant for -1, 0, 1; one scale."""

from .bits import half, signed, unpack
from .block import BlockFormat, Bytes, Planes


def _planes(blocks: Bytes) -> Planes:
    return Planes(signed(unpack(blocks[:, :64], 2, 32), 1), half(blocks, 64))


TQ2_0 = BlockFormat("tq2_0", 35, 256, 66, planes=_planes)
