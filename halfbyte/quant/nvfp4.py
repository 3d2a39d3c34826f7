"""nvfp4: 64 floats of 4 bits; each 16 have an unsigned 8-bit float (4 exponent, 3 mantissa bits) as scale."""

import numpy as np

from ..errors import ConfigError
from .bits import pack, unpack
from .block import BlockFormat, Bytes, Floats, Planes
from .e2m1 import E2M1, E2M1_LEVELS, e2m1_nibbles
from .encoder import Encoder, Fit, Grid, Search
from .half_scale import counted
from .try_scales import least_error


def _scales() -> Floats:
    """f32[256]: what a scale byte means, halved because E2M1 is doubled; the top bit is ignored, 0x7F means zero."""
    exponent, mantissa = np.divmod(np.arange(256) & 127, 8)
    whole = np.where(exponent == 0, mantissa, mantissa + 8)
    values: Floats = np.ldexp(whole.astype(np.float32), np.maximum(exponent, 1) - 11)
    values[0x7F] = 0
    return values


_SCALES = _scales()
_LAST = 0x7E


def _planes(blocks: Bytes) -> Planes:
    return Planes(E2M1[unpack(blocks[:, 4:], 4, 8)], _SCALES[blocks[:, :4]])


def _fit(values: Floats, weights: Floats | None, search: Search) -> Fit:
    x, w = counted(values, weights, 16)
    _refuse_beyond(x)
    scale = search.scale(x, w, E2M1_LEVELS)
    above = np.clip(np.searchsorted(_SCALES[: _LAST + 1], scale), 1, _LAST)
    below = above - 1
    field = np.where(least_error(x, w, [_SCALES[above], _SCALES[below]], E2M1_LEVELS, search), below, above)
    field = field.astype(np.uint8).reshape(-1, 4)
    return Fit(Grid(_SCALES[field], None, E2M1_LEVELS), (field,))


def _refuse_beyond(x: Floats) -> None:
    most = float(_SCALES[_LAST]) * float(E2M1_LEVELS[-1])
    peak = float(np.abs(x).max(initial=0))
    if peak > most:
        raise ConfigError(f"nvfp4 cannot hold {peak!r}, only weights up to {most:g}; keep the tensor in bf16")


def _pack(fit: Fit, codes: Bytes) -> Bytes:
    return np.concatenate([*fit.fields, pack(e2m1_nibbles(codes), 4, 8)], axis=1)


NVFP4 = BlockFormat("nvfp4", 40, 64, 36, planes=_planes, encoder=Encoder(_fit, _pack))
