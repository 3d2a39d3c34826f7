"""`Moments`: all that the error of a group depends on while its codes stay, whatever its scale and offset become."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .block import Bytes, Floats
from .encoder import Levels

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """Weighted sums f64[n, groups] of levels `q` and weights `x`; `error` is exact but for the sum of x squared.

    In double precision, because the error is what remains after the sums cancel each other.
    """

    qq: Doubles
    q: Doubles
    one: Doubles
    qx: Doubles
    x: Doubles

    def error(self, scale: Floats | Doubles, offset: Floats | Doubles) -> Doubles:
        """Sum of `w * (x - scale * q - offset)^2` less that of `w * x^2`."""
        of_scale: Doubles = scale * (scale * self.qq + 2 * (offset * self.q - self.qx))
        return of_scale + offset * (offset * self.one - 2 * self.x)


def moments(x: Floats, w: Floats, codes: Bytes, levels: Levels, groups: int) -> Moments:
    """Of x, w f32[G, L] and codes u8[G, L], with `groups` groups a block."""
    if levels[-1] - levels[0] == len(levels) - 1:
        q = codes.astype(np.float32)
        if levels[0]:
            q += np.float32(levels[0])
    else:
        q = levels.astype(np.float32).take(codes, mode="clip")
    wq = w * q
    sums = (
        np.einsum("gl,gl->g", wq, q),
        np.einsum("gl,gl->g", w, q),
        np.einsum("gl->g", w),
        np.einsum("gl,gl->g", wq, x),
        np.einsum("gl,gl->g", w, x),
    )
    return Moments(*(s.astype(np.float64).reshape(-1, groups) for s in sums))
