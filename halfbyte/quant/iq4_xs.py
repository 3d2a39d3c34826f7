"""iq4_xs: 256 codes into the levels of iq4_nl; each 32 have a scale of 6 bits around 32."""

from functools import partial

import numpy as np

from .bits import half, join, pack, signed, unpack
from .block import BlockFormat, Bytes, Planes
from .encoder import Encoder, Fit
from .iq4_nl import LEVELS
from .k_fit import fit_counted

_COUNTS = np.arange(-32, 32, dtype=np.int16)


def _planes(blocks: Bytes) -> Planes:
    scales = join(unpack(blocks[:, 4:8], 4, 1), unpack(blocks[:, 2:4], 2, 1), 4)
    return Planes(LEVELS[unpack(blocks[:, 8:], 4, 16)], half(blocks, 0) * signed(scales, 32))


def _pack(fit: Fit, codes: Bytes) -> Bytes:
    unit, counts = fit.fields
    scales = [pack(counts >> np.uint8(4), 2, 1), pack(counts & np.uint8(15), 4, 1)]
    return np.concatenate([unit, *scales, pack(codes, 4, 16)], axis=1)


_ENCODER = Encoder(partial(fit_counted, "iq4_xs", LEVELS, _COUNTS, 8), _pack)
IQ4_XS = BlockFormat("iq4_xs", 23, 256, 136, planes=_planes, encoder=_ENCODER)
