"""`NUMPY`: scale and offset of groups of weights by search, in plain NumPy.

The order of every float operation is part of the result: sums go along the group one weight after the other, each
product and each sum rounded by itself, so that the compiled twin gets the same bits. Groups are looked at in units of
their own extreme weight, weights of errors in units of the largest: then nothing overflows, however small or large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from .block import Bytes, Floats
from .candidates import affine_candidates, boundaries, consecutive, mirrored, scale_candidates
from .encoder import Levels, Search
from .grid_search import trial
from .points import Points, Targets, Trial

TINY = np.float32(2.0**-100)
"""Below it weights count as zero: their inverse might not be finite."""
HUGE = np.float32(2.0**100)
REFINEMENTS = 1
"""Times the best candidate is coded again with its own fit; a second time gains less than a ten-thousandth."""
FLAT = np.float32(2.0**-20)
"""Codes whose variance is this small beside their mean square are all the same but for rounding."""
_MAGIC = np.float32(1.5 * 2**23)
_PIECE = 1024
_ZERO, _ONE, _TWO = np.float32(0), np.float32(1), np.float32(2)

Nearest = Callable[[Floats], Floats]


def _nearest(levels: Levels) -> Nearest:
    """From multiples of the scale to the nearest level as a float, in place."""
    if consecutive(levels):
        low, high = np.float32(levels[0]), np.float32(levels[-1])

        def nearest(r: Floats) -> Floats:
            np.minimum(np.maximum(r, low, out=r), high, out=r)
            r += _MAGIC
            r -= _MAGIC
            return r

        return nearest
    values, middles = levels.astype(np.float32), boundaries(levels)
    return lambda r: values[np.searchsorted(middles, r)]


def _total(products: Floats) -> Floats:
    """f32[g] of f32[L, g], one after the other."""
    total = np.zeros(products.shape[1], np.float32)
    for row in products:
        total += row
    return total


def _shares(w: Floats) -> Floats:
    """Weights of errors in units of the largest of the group; all alike where none counts."""
    most = w.max(axis=0)
    counts = most >= TINY
    return np.where(counts, w * (_ONE / np.where(counts, most, _ONE)), _ONE)


def _pieces(x: Floats, *more: Floats) -> Iterator[tuple[slice, list[Floats]]]:
    for start in range(0, len(x), _PIECE):
        piece = slice(start, start + _PIECE)
        yield piece, [np.ascontiguousarray(a[piece].T, dtype=np.float32) for a in (x, *more)]


class _ScaleFit:
    """Scale alone: what is known of a piece [L, g], and the best scale found so far."""

    def __init__(self, x: Floats, w: Floats, levels: Levels) -> None:
        high, low = x.max(axis=0), x.min(axis=0)
        extreme = np.where(high >= -low, high, low)
        self.alive = np.abs(extreme) >= TINY
        self.unit: Floats = np.where(self.alive, extreme, _ONE)
        self.nearest = _nearest(levels)
        self.mirrored = mirrored(levels)
        self.candidates = scale_candidates(levels)
        self.y = x * (_ONE / self.unit)
        self.w = _shares(w)
        self.wy = self.w * self.y
        self.gain = np.zeros(x.shape[1], np.float32)
        self.scale = np.broadcast_to(_ONE / self.candidates[0], self.gain.shape)

    def attempt(self, inverse: Floats) -> None:
        """Code with an inverse scale (one, or one a group), fit the scale to the codes, keep it where it is better."""
        q = self.nearest(self.y * inverse)
        along, square = _total(self.wy * q), _total(self.w * q * q)
        scale = along / square
        gain = along * scale
        better = gain > self.gain
        self.gain = np.where(better, gain, self.gain)
        self.scale = np.where(better, scale, self.scale)

    def search(self) -> Floats:
        for candidate in self.candidates:
            self.attempt(candidate)
        for _ in range(REFINEMENTS):
            self.attempt(np.minimum(np.maximum(_ONE / self.scale, -HUGE), HUGE))
        scale = np.where(self.alive, self.scale * self.unit, _ZERO)
        return np.abs(scale) if self.mirrored else scale


class _AffineFit:
    """Scale and offset together, in units where the group spans 0 .. 1."""

    def __init__(self, x: Floats, w: Floats, top: int, most: np.float32) -> None:
        self.low = np.minimum(x.min(axis=0), most) + _ZERO  # of the two zeros only the positive one
        self.most = most
        span = x.max(axis=0) - self.low
        self.alive = (span >= TINY) & (span < np.inf)
        self.span: Floats = np.where(self.alive, span, _ONE)
        inverse = _ONE / self.span
        self.nearest = _nearest(np.arange(top + 1, dtype=np.int16))
        self.candidates = affine_candidates(top)
        self.y = (x - self.low) * inverse
        self.room = (most - self.low) * inverse
        self.w = _shares(w)
        self.wy = self.w * self.y
        self.sum_w, self.sum_y = _total(self.w), _total(self.wy)
        self.gain = np.full(x.shape[1], -HUGE, np.float32)
        self.scale = np.broadcast_to(_ONE / np.float32(top), self.gain.shape)
        self.offset = np.zeros_like(self.gain)

    def attempt(self, inverse: Floats, shift: Floats) -> None:
        """Code with `y * inverse + shift`, solve for scale and offset, keep them where they are better."""
        q = self.nearest(self.y * inverse + shift)
        wq = self.w * q
        codes, square, along = _total(wq), _total(wq * q), _total(self.wy * q)
        weighted = self.sum_w * square
        spread = weighted - codes * codes
        scale = (self.sum_w * along - self.sum_y * codes) / spread
        offset = (self.sum_y - scale * codes) / self.sum_w
        over = offset > self.room
        offset = np.where(over, self.room, offset)
        scale = np.where(over, (along - self.room * codes) / square, scale)
        gain = scale * (_TWO * along - scale * square - _TWO * (offset * codes))
        gain = gain + offset * (_TWO * self.sum_y - offset * self.sum_w)
        better = (gain > self.gain) & (scale > _ZERO) & (spread > FLAT * weighted)
        self.gain = np.where(better, gain, self.gain)
        self.scale = np.where(better, scale, self.scale)
        self.offset = np.where(better, offset, self.offset)

    def search(self) -> tuple[Floats, Floats]:
        for inverse, shift in self.candidates:
            self.attempt(inverse, shift)
        for _ in range(REFINEMENTS):
            inverse = np.minimum(_ONE / self.scale, HUGE)
            self.attempt(inverse, _ZERO - self.offset * inverse)
        scale = np.where(self.alive, self.scale * self.span, _ZERO)
        offset = np.where(self.alive, self.low + self.offset * self.span, self.low)
        return scale, np.minimum(offset, self.most) + _ZERO


class NumPySearch:
    """`Search` without a compiler: the reference of the compiled one."""

    def scale(self, x: Floats, w: Floats, levels: Levels) -> Floats:
        """See `Search.scale`."""
        result = np.empty(len(x), np.float32)
        with np.errstate(all="ignore"):
            for piece, (part, shares) in _pieces(x, w):
                result[piece] = _ScaleFit(part, shares, levels).search()
        return result

    def affine(self, x: Floats, w: Floats, top: int, most: float) -> tuple[Floats, Floats]:
        """See `Search.affine`."""
        scale, offset = np.empty(len(x), np.float32), np.empty(len(x), np.float32)
        with np.errstate(all="ignore"):
            for piece, (part, shares) in _pieces(x, w):
                scale[piece], offset[piece] = _AffineFit(part, shares, top, np.float32(most)).search()
        return scale, offset

    def codes(self, x: Floats, scale: Floats, offset: Floats | None, levels: Levels) -> Bytes:
        """See `Search.codes`; without a compiler the arrays are best as they are."""
        result = np.empty(x.shape, np.uint8)
        low, high = np.float32(levels[0]), np.float32(levels[-1])
        middles = None if consecutive(levels) else boundaries(levels)
        with np.errstate(all="ignore"):
            for start in range(0, len(x), _PIECE):
                piece = slice(start, start + _PIECE)
                part, step = x[piece], scale[piece, None]
                if offset is not None:
                    part = part - offset[piece, None]
                ratio = np.where(step == 0, _ZERO, part / step)
                if middles is None:
                    result[piece] = np.rint(np.minimum(np.maximum(ratio, low), high)) - low
                else:
                    result[piece] = np.searchsorted(middles, ratio)
        return result

    def moments(self, x: Floats, w: Floats, scale: Floats, offset: Floats | None, levels: Levels) -> Floats:
        """See `Search.moments`."""
        result = np.empty((6, len(x)), np.float32)
        nearest, offset = _nearest(levels), np.zeros_like(scale) if offset is None else offset
        with np.errstate(all="ignore"):
            for piece, (part, w_part) in _pieces(x, w):
                step, zero = scale[piece], offset[piece]
                q = nearest(np.where(step == 0, _ZERO, (part - zero) / step))
                rest, wq = part - (step * q + zero), w_part * q
                w_rest = w_part * rest
                sums = wq * q, wq, w_part, wq * rest, w_rest, w_rest * rest
                result[:, piece] = [_total(products) for products in sums]
        return result

    def trial(self, targets: Targets, inverse: Floats, points: Points) -> Trial:
        """See `Search.trial`."""
        with np.errstate(all="ignore"):
            return trial(targets, inverse, points)


NUMPY: Search = NumPySearch()
