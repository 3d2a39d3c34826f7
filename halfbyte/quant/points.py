"""`Points`: values neighbouring weights can take together, and what is known once the nearest are found."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .block import Floats


@dataclass(frozen=True, eq=False)
class Points:
    """What a code means in units of the scale: `values` i16[k, n] for the n weights it stands for, n 4 or 8.

    `even` says that 8 neighbours have an even number of minus signs; `values` then are magnitudes. A point's distance
    is what the first and the second half of its weights add to it, and there are far fewer halves than points.
    """

    values: NDArray[np.int16]
    even: bool = False

    @property
    def width(self) -> int:
        """Weights a code stands for: 4 or 8."""
        return int(self.values.shape[1])

    @cached_property
    def levels(self) -> NDArray[np.int16]:
        """i16[v]: the values a single weight can have."""
        return np.unique(self.values)

    @cached_property
    def halves(self) -> tuple[Half, Half]:
        """First and second half of the weights."""
        digits = np.searchsorted(self.levels, self.values).astype(np.int32)
        half = self.width // 2
        return _half(digits[:, :half]), _half(digits[:, half:])


@dataclass(frozen=True)
class Half:
    """The h different halves: `digits` i32[h, n / 2] into the levels, and `of` i32[k] which one each point has."""

    digits: NDArray[np.int32]
    of: NDArray[np.int32]


def _half(digits: NDArray[np.int32]) -> Half:
    different, of = np.unique(digits, axis=0, return_inverse=True)
    return Half(different, of.reshape(-1).astype(np.int32))


@dataclass(frozen=True)
class Targets:
    """Weights of G groups to be written, a group a column: `x` f32[L, G], `w` f32[L, G] how much an error counts.

    For points with signs of their own x is the magnitude; where those signs come in even numbers, `odd` f32[L / 8, G]
    is 1 where 8 neighbours have an odd number of minus signs and one must be written with the wrong one, else 0.
    """

    x: Floats
    w: Floats
    odd: Floats | None = None


@dataclass(frozen=True)
class Trial:
    """The points nearest to the targets under some scale.

    Shapes: `codes` u16[L / n, G], `wrong` i8[L / 8, G] which of 8 neighbours has the wrong sign or -1 (None without
    `odd`), `dot` f32[G] = sum w x q, `square` f32[G] = sum w q q, q the point with the wrong sign where it must be. The
    error under scale s is `sum w x x - 2 s dot + s s square`.
    """

    codes: NDArray[np.uint16]
    wrong: NDArray[np.int8] | None
    dot: Floats
    square: Floats
