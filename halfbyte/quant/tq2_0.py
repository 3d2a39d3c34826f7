"""tq2_0: 256 codes of 2 bits around 1, meant for -1, 0, 1; one scale."""

from functools import partial

import numpy as np

from .bits import half, pack, signed, unpack
from .block import BlockFormat, Bytes, Planes
from .encoder import Encoder, Fit
from .half_scale import fit_scale

_LEVELS = np.arange(-1, 2, dtype=np.int16)


def _planes(blocks: Bytes) -> Planes:
    return Planes(signed(unpack(blocks[:, :64], 2, 32), 1), half(blocks, 64))


def _pack(fit: Fit, codes: Bytes) -> Bytes:
    return np.concatenate([pack(codes, 2, 32), *fit.fields], axis=1)


_ENCODER = Encoder(partial(fit_scale, "tq2_0", _LEVELS), _pack)
TQ2_0 = BlockFormat("tq2_0", 35, 256, 66, planes=_planes, encoder=_ENCODER)
