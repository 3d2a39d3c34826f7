"""Which inverse scales a search tries first, in levels where the group's extreme weight (or its span) may end.

The tables were chosen greedily among some hundred places: each next one is what lowered the mean error of normal and
heavy-tailed groups, with and without uneven weights, most. Whole levels inside the range are among them so that weights
from a grid whose last levels are not in use are found again; places beyond cut the extreme weight off.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .block import Floats
from .encoder import Levels

_BY_COUNT: dict[int, tuple[tuple[float, ...], tuple[float, ...]]] = {
    3: ((0.15, 0.28, 0.5, 0.62, 0.73, 0.85, 0.98, 1.12, 1.29, 1.7, 2.4), ()),
    4: ((-0.66, -0.29, -0.12, 0.12, 0.29, 0.46, 0.64, 0.91, 1.25, 1.9), (0, 0.9, 1.07, 1.27, 1.53, 2.01)),
    8: ((-1, -0.72, -0.33, 0.13, 0.27, 0.55, 0.81, 1.13, 2.02), (-0.79, 0, 0.85, 1.26, 1.56)),
    16: ((-2, -1.31, -1, -0.3, -0.14, 0.14, 0.26, 0.54, 0.74, 0.98, 1.26, 1.7, 2.51), (-0.76, 0, 0.29, 1.14)),
    32: ((-3.18, -2.86, -2, -1.33, -1, -0.29, 0.27, 0.51, 0.75, 0.99), (-3.81, -1.24, -0.72, 0, 0.26)),
    64: (
        (-8, -7, -4, -3, -2.66, -2, -1.38, -1, -0.74, -0.26, 0.38),
        (-10, -8, -4.93, -4, -2, -1, -0.71, 0),
    ),
}
"""Of consecutive levels by their number: levels beyond the end that reaches farther, and beyond the other one."""

_UNEVEN = ((0.81, 0.86, 0.95, 0.977, 1.03, 1.07, 1.13, 1.2), (0.8, 0.947, 0.97, 1, 1.03, 1.07, 1.14))
_UNEVEN_EVEN_ENDS = (0.63, 0.66, 0.69, 0.726, 0.75, 0.78, 0.88, 0.93, 0.967, 1.042, 1.067, 1.09, 1.12, 1.158)
"""Of other tables: parts of the end; the second where both ends are alike."""

_SPANS: dict[int, tuple[tuple[float, float], ...]] = {
    3: (
        *((0.75, 0.5), (0.5, 0.0), (0.75, 0.75), (0.75, 0.25), (1.0, 0.0), (0.0, 0.25), (-0.5, 0.25), (1.0, 0.5)),
        *((0.0, -0.25), (1.0, 0.25), (1.0, 0.75), (0.25, 0.25), (0.25, 0.0), (1.25, 1.25), (0.75, -0.25)),
        *((1.75, 1.0), (2.25, 0.5)),
    ),
    15: (
        *((-1.0, 0.0), (-2.0, 0.0), (0.5, 0.5), (0.5, 0.0), (0.5, 0.25), (0.0, -0.25), (0.0, 0.25), (-0.75, 0.25)),
        *((-0.75, 0.0), (0.75, 0.75), (0.25, 0.25), (0.25, 0.0), (0.75, 0.0), (-0.25, -0.25), (-1.0, -0.25)),
        *((0.75, 0.25), (-0.25, 0.0), (-1.75, 0.0), (-3.0, 0.0), (1.25, 0.0), (1.25, 0.75), (1.25, 1.25), (1.75, 0.5)),
    ),
    31: (
        *((-1.0, 0.0), (-2.0, 0.0), (0.0, -0.25), (0.0, 0.25), (-3.0, 0.0), (-0.75, 0.25), (-1.0, -0.25), (0.25, 0.25)),
        *((0.25, 0.0), (0.25, -0.25), (-4.0, 0.0), (-1.75, 0.0), (-1.75, 0.25), (0.75, 0.75), (-0.75, 0.0)),
        *((-1.0, 0.25), (-0.5, -0.25), (-2.75, 0.25), (-2.75, 0.0), (1.0, 0.25), (0.75, 0.5), (1.25, 0.0), (-5.0, 0.0)),
    ),
}
"""By the last level: levels more than it that the span takes, and how far below zero the least weight lies."""


def consecutive(levels: Levels) -> bool:
    """Whether rounding finds the nearest level: each is one more than the one before."""
    return bool((np.diff(levels) == 1).all())


def mirrored(levels: Levels) -> bool:
    """Whether a scale of either sign holds the same values."""
    return bool((levels == -levels[::-1]).all())


def boundaries(levels: Levels) -> Floats:
    """f32[k - 1]: the middles between neighbouring levels, exact."""
    wide = levels.astype(np.float32)
    return (wide[1:] + wide[:-1]) * np.float32(0.5)


def scale_candidates(levels: Levels) -> Floats:
    """f32[n]: where on the axis of levels the extreme weight of a group may lie; the plain choice first."""
    far, near = sorted((float(levels[-1]), float(levels[0])), key=abs, reverse=True)
    one_sided = near * far >= 0 or near == -far
    if consecutive(levels):
        beyond_far, beyond_near = _BY_COUNT[_closest(len(levels), _BY_COUNT)]
        places = [far + np.sign(far) * beyond for beyond in beyond_far]
        places += [] if one_sided else [near + np.sign(near) * beyond for beyond in beyond_near]
    elif one_sided:
        places = [far * part for part in _UNEVEN_EVEN_ENDS]
    else:
        places = [far * part for part in _UNEVEN[0]] + [near * part for part in _UNEVEN[1]]
    return np.array([far, *places], dtype=np.float32)


def affine_candidates(top: int) -> Floats:
    """f32[n, 2]: levels the span of a group takes, and the level its least weight lies at; the plain choice first."""
    return np.array(
        [(top, 0.0), *((top + wider, -below) for wider, below in _SPANS[_closest(top, _SPANS)])], np.float32
    )


def _closest(size: int, known: Iterable[int]) -> int:
    return min(known, key=lambda other: abs(other - size))
