"""Which inverse scales a search tries first, in steps of the group's extreme weight or of its span."""

from __future__ import annotations

import numpy as np

from .block import Floats
from .encoder import Levels


def consecutive(levels: Levels) -> bool:
    """Whether rounding finds the nearest level: each is one more than the one before."""
    return bool((np.diff(levels) == 1).all())


def boundaries(levels: Levels) -> Floats:
    """f32[k - 1]: the middles between neighbouring levels, exact."""
    wide = levels.astype(np.float32)
    return (wide[1:] + wide[:-1]) * np.float32(0.5)


def scale_candidates(levels: Levels) -> Floats:
    """f32[n]: the level the extreme weight of a group is put at, on either side of zero; the plain choice first.

    Below the last level whole numbers are tried, so that weights from a grid whose ends are not in use are found again;
    beyond it the extreme weight is cut off, which pays where it stands alone.
    """
    low, high = float(levels[0]), float(levels[-1])
    ends = [high] if low >= 0 or -low == high else [low, high]
    if not consecutive(levels):
        steps = [end * factor for end in ends for factor in _FACTORS]
    else:
        steps = [end + (beyond if end > 0 else -beyond) for end in ends for beyond in _BEYOND]
    plain = low if -low >= high else high
    return np.array([plain, *(t for t in steps if t != plain and abs(t) >= 0.5)], dtype=np.float32)


_BEYOND = (-2.0, -1.0, -0.5, 0.0, 0.4, 0.8, 1.2, 1.6, 2.0)
_FACTORS = (0.88, 0.92, 0.96, 1.0, 1.04, 1.08, 1.12, 1.16)


def affine_candidates(top: int) -> Floats:
    """f32[n, 2]: steps in the span of a group, and the level its least weight is put at; the plain choice first."""
    return np.array([(top, 0.0), *_affine(top)], dtype=np.float32)


def _affine(top: int) -> list[tuple[float, float]]:
    return [(top + wider, -shift) for wider, shift in _WIDER]


_WIDER = (
    *((-2.0, 0.0), (-1.0, 0.0), (-0.5, 0.0)),
    *((0.5, 0.0), (0.5, 0.5), (0.5, 0.25), (1.0, 0.0), (1.0, 0.5), (1.0, 1.0)),
    *((1.5, 0.5), (1.5, 1.0), (1.5, 0.0), (2.0, 1.0), (2.0, 0.5), (2.0, 1.5)),
)
