"""q3_k: 256 codes of 3 bits around 4, the top bits apart; each 16 have a scale of 6 bits around 32."""

from functools import partial

import numpy as np

from .bits import half, join, pack, signed, unpack
from .block import BlockFormat, Bytes, Planes
from .encoder import Encoder, Fit
from .k_fit import fit_counted

_LEVELS = np.arange(-4, 4, dtype=np.int16)
_COUNTS = np.arange(-32, 32, dtype=np.int16)


def _planes(blocks: Bytes) -> Planes:
    scales = join(unpack(blocks[:, 96:104], 4, 8), unpack(blocks[:, 104:108], 2, 4), 4)
    q = join(unpack(blocks[:, 32:96], 2, 32), unpack(blocks[:, :32], 1, 32), 2)
    return Planes(signed(q, 4), half(blocks, 108) * signed(scales, 32))


def _pack(fit: Fit, codes: Bytes) -> Bytes:
    unit, counts = fit.fields
    scales = [pack(counts & np.uint8(15), 4, 8), pack(counts >> np.uint8(4), 2, 4)]
    return np.concatenate([pack(codes >> np.uint8(2), 1, 32), pack(codes & np.uint8(3), 2, 32), *scales, unit], axis=1)


_ENCODER = Encoder(partial(fit_counted, "q3_k", _LEVELS, _COUNTS, 16), _pack)
Q3_K = BlockFormat("q3_k", 11, 256, 110, planes=_planes, encoder=_ENCODER)
