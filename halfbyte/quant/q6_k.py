"""q6_k: 256 codes of 6 bits around 32, the top 2 bits apart; each 16 have a signed byte times one half as scale."""

from functools import partial

import numpy as np

from .bits import half, join, pack, signed, unpack
from .block import BlockFormat, Bytes, Planes
from .encoder import Encoder, Fit
from .k_fit import fit_counted

_LEVELS = np.arange(-32, 32, dtype=np.int16)
_COUNTS = np.arange(-128, 128, dtype=np.int16)


def _planes(blocks: Bytes) -> Planes:
    q = join(unpack(blocks[:, :128], 4, 64), unpack(blocks[:, 128:192], 2, 32), 4)
    return Planes(signed(q, 32), half(blocks, 208) * blocks[:, 192:208].view(np.int8))


def _pack(fit: Fit, codes: Bytes) -> Bytes:
    unit, counts = fit.fields
    # Counted from -128, a byte and its two's complement differ in the top bit alone.
    scales = counts ^ np.uint8(128)
    return np.concatenate([pack(codes & np.uint8(15), 4, 64), pack(codes >> np.uint8(4), 2, 32), scales, unit], axis=1)


_ENCODER = Encoder(partial(fit_counted, "q6_k", _LEVELS, _COUNTS, 16), _pack)
Q6_K = BlockFormat("q6_k", 14, 256, 210, planes=_planes, encoder=_ENCODER)
