"""`Moments`: all that the error of groups depends on while their codes stay, whatever scale and offset become."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .block import Floats
from .encoder import Levels, Search

_TINY = np.float32(2.0**-120)
"""Added to a sum of squares; where it makes a difference the numerator is zero."""


@dataclass(frozen=True)
class Moments:
    """Sums of `Search.moments` at `scale` and `offset`; everything f32[groups, n].

    Told from what codes leave over, not from the weights: close to a perfect fit sums over weights would cancel.
    """

    scale: Floats
    offset: Floats
    qq: Floats
    q: Floats
    one: Floats
    qr: Floats
    r: Floats
    rr: Floats

    def error(self, scale: Floats, offset: Floats) -> Floats:
        """Sum of `w * (x - scale * q - offset)^2`."""
        a, b = scale - self.scale, offset - self.offset
        two = np.float32(2)
        error: Floats = self.rr + a * (a * self.qq + two * (b * self.q - self.qr)) + b * (b * self.one - two * self.r)
        return error

    def best_scale(self, offset: Floats) -> Floats:
        """The scale of least error for an offset."""
        best: Floats = self.scale + (self.qr - (offset - self.offset) * self.q) / (self.qq + _TINY)
        return best

    def best_offset(self, scale: Floats) -> Floats:
        """The offset of least error for a scale."""
        best: Floats = self.offset + (self.r - (scale - self.scale) * self.q) / (self.one + _TINY)
        return best

    def spread(self) -> Floats:
        """How steeply the error rises with the scale while the offset follows it; zero where all codes are alike."""
        mean = self.q / (self.one + _TINY)
        spread = self.qq - self.q * mean
        return np.where(spread > np.float32(1e-5) * self.qq, spread, np.float32(0))

    def free_scale(self, spread: Floats) -> Floats:
        """The scale of least error while the offset follows it."""
        along = self.qr - self.q * (self.r / (self.one + _TINY))
        best: Floats = self.scale + np.where(spread > 0, along, np.float32(0)) / (spread + _TINY)
        return best


def moments(x: Floats, w: Floats, scale: Floats, offset: Floats | None, levels: Levels, search: Search) -> Moments:
    """Of x, w f32[n * groups, L] at scale and offset f32[groups, n]."""
    flat = None if offset is None else offset.T.reshape(-1)
    sums = search.moments(x, w, scale.T.reshape(-1), flat, levels)
    groups = len(scale)
    turned = np.ascontiguousarray(sums.reshape(6, -1, groups).transpose(0, 2, 1))
    return Moments(scale, np.zeros_like(scale) if offset is None else offset, *turned)
