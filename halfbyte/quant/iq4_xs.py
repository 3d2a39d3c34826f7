"""iq4_xs: 256 codes into the levels of iq4_nl; each 32 have a scale of 6 bits around 32."""

from .bits import half, join, signed, unpack
from .block import BlockFormat, Bytes, Planes
from .iq4_nl import LEVELS


def _planes(blocks: Bytes) -> Planes:
    scales = join(unpack(blocks[:, 4:8], 4, 1), unpack(blocks[:, 2:4], 2, 1), 4)
    return Planes(LEVELS[unpack(blocks[:, 8:], 4, 16)], half(blocks, 0) * signed(scales, 32))


IQ4_XS = BlockFormat("iq4_xs", 23, 256, 136, planes=_planes)
