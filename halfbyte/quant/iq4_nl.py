"""iq4_nl: 32 codes of 4 bits into a table of uneven levels, one scale."""

from functools import partial

import numpy as np

from .bits import half, pack, unpack
from .block import BlockFormat, Bytes, Planes
from .encoder import Encoder, Fit
from .half_scale import fit_scale

LEVELS = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], dtype=np.int16)


def _planes(blocks: Bytes) -> Planes:
    return Planes(LEVELS[unpack(blocks[:, 2:], 4, 16)], half(blocks, 0))


def _pack(fit: Fit, codes: Bytes) -> Bytes:
    return np.concatenate([*fit.fields, pack(codes, 4, 16)], axis=1)


_ENCODER = Encoder(partial(fit_scale, "iq4_nl", LEVELS), _pack)
IQ4_NL = BlockFormat("iq4_nl", 20, 32, 18, planes=_planes, encoder=_ENCODER)
