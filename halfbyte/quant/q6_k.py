"""q6_k: 256 codes of 6 bits around 32, the top 2 bits apart; each 16 have a signed byte times one half as scale."""

import numpy as np

from .bits import half, join, signed, unpack
from .block import BlockFormat, Bytes, Planes


def _planes(blocks: Bytes) -> Planes:
    q = join(unpack(blocks[:, :128], 4, 64), unpack(blocks[:, 128:192], 2, 32), 4)
    return Planes(signed(q, 32), half(blocks, 208) * blocks[:, 192:208].view(np.int8))


Q6_K = BlockFormat("q6_k", 14, 256, 210, planes=_planes)
