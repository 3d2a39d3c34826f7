"""q3_k: 256 codes of 3 bits around 4, the top bits apart; each 16 have a scale of 6 bits around 32."""

from .bits import half, join, signed, unpack
from .block import BlockFormat, Bytes, Planes


def _planes(blocks: Bytes) -> Planes:
    scales = join(unpack(blocks[:, 96:104], 4, 8), unpack(blocks[:, 104:108], 2, 4), 4)
    q = join(unpack(blocks[:, 32:96], 2, 32), unpack(blocks[:, :32], 1, 32), 2)
    return Planes(signed(q, 4), half(blocks, 108) * signed(scales, 32))


Q3_K = BlockFormat("q3_k", 11, 256, 110, planes=_planes)
