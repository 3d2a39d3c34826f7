"""Scales of groups as small integers times one half-precision unit a block, chosen for the error they leave.

Three choices hang together: the codes of the weights, the integers and the units. `Moments` tell the error of any
integers and units while codes stay, so a round fixes the codes, looks for better integers and units, and keeps them
where they are better: the error never rises from round to round. Arrays are [groups, n]: n blocks lie side by side, so
that what holds for a block applies to long rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .bits import half_bytes
from .block import Floats
from .encoder import Levels, Search
from .moments import Moments, moments


@dataclass(frozen=True)
class Scaled:
    """`unit * count`: unit f32[n] that half precision holds, whole numbers count f32[groups, n]."""

    unit: Floats
    count: Floats

    @property
    def value(self) -> Floats:
        """f32[groups, n], rounded once, as every format decodes it."""
        return self.unit * self.count

    def where(self, better: NDArray[np.bool_], other: Scaled) -> Scaled:
        """Itself where `better` bool[n], elsewhere the other."""
        return Scaled(np.where(better, self.unit, other.unit), np.where(better, self.count, other.count))


def nearest(ideal: Floats, unit: Floats, counts: Levels) -> Scaled:
    """The counts of `counts` (consecutive) nearest to f32[groups, n]; none where the unit is zero."""
    inverse = np.where(unit == 0, np.float32(0), np.float32(1) / np.where(unit == 0, np.float32(1), unit))
    count = np.rint(ideal * inverse)
    np.minimum(np.maximum(count, np.float32(counts[0]), out=count), np.float32(counts[-1]), out=count)
    return Scaled(unit, count)


def scaled(ideal: Floats, weight: Floats, counts: Levels, search: Search, name: str) -> Scaled:
    """Units and counts nearest to `ideal`; `weight` says how much the square of a miss counts."""
    found = search.scale(np.ascontiguousarray(ideal.T), np.ascontiguousarray(weight.T), counts)
    unit = half_bytes(found[:, None], name).view("<f2")[:, 0]
    best = nearest(ideal, unit.astype(np.float32), counts)
    least = _miss(ideal, weight, best)
    # The nearest half need not be best where halves are coarse, as they are for units below 2^-14.
    for step in (-1, 1):
        other = nearest(ideal, _neighbour(unit, step), counts)
        miss = _miss(ideal, weight, other)
        best, least = other.where(miss < least, best), np.minimum(miss, least)
    return best


def _miss(ideal: Floats, weight: Floats, found: Scaled) -> Floats:
    away = ideal - found.value
    miss: Floats = np.add.reduce(weight * away * away, axis=0)
    return miss


def _neighbour(halves: NDArray[np.float16], step: int) -> Floats:
    """f32[n]: the next half away from zero or towards it; the same one where that would be none."""
    bits = halves.view("<i2")
    magnitude = (bits & np.int16(0x7FFF)) + np.int16(step)
    held = (magnitude >= 0) & (magnitude < 0x7C00)
    moved = np.where(held, bits + np.int16(step), bits).astype("<i2")
    return moved.view("<f2").astype(np.float32)


def fit_scales(
    x: Floats, w: Floats, levels: Levels, counts: Levels, groups: int, rounds: int, search: Search, name: str
) -> Scaled:
    """Scales alone, for x, w f32[n * groups, L]."""
    ideal = np.ascontiguousarray(search.scale(x, w, levels).reshape(-1, groups).T)
    sums = moments(x, w, ideal, None, levels, search)
    best = scaled(ideal, sums.qq, counts, search, name)
    for _ in range(rounds):
        sums = moments(x, w, best.value, None, levels, search)
        other = scaled(sums.best_scale(sums.offset), sums.qq, counts, search, name)
        best = other.where(_error(sums, other) < _error(sums, best), best)
    return best


def _error(sums: Moments, scale: Scaled, minimum: Scaled | None = None) -> Floats:
    """f32[n]: of the whole block."""
    offset = sums.offset if minimum is None else -minimum.value
    error: Floats = np.add.reduce(sums.error(scale.value, offset), axis=0)
    return error


def fit_affine(
    x: Floats, w: Floats, levels: Levels, counts: Levels, groups: int, rounds: int, search: Search, name: str
) -> tuple[Scaled, Scaled]:
    """Scales and what is subtracted, for x, w f32[n * groups, L]; `counts` serve both and start from 0."""
    found = search.affine(x, w, len(levels) - 1, 0.0)
    scale, offset = (np.ascontiguousarray(part.reshape(-1, groups).T) for part in found)
    sums = moments(x, w, scale, offset, levels, search)
    best = _settle(sums, counts, search, name)
    for _ in range(rounds):
        sums = moments(x, w, best[0].value, -best[1].value, levels, search)
        other = _resettle(sums, best[1], counts, search, name)
        better = _error(sums, *other) < _error(sums, *best)
        best = other[0].where(better, best[0]), other[1].where(better, best[1])
    return best


def _settle(sums: Moments, counts: Levels, search: Search, name: str) -> tuple[Scaled, Scaled]:
    """Scales and minima for codes as they are, scales first: each group's best, then units, then minima for those."""
    zero = np.float32(0)
    spread = sums.spread()
    ideal = sums.free_scale(spread)
    bound = sums.best_offset(ideal) >= zero
    ideal = np.maximum(np.where(bound, sums.best_scale(np.zeros_like(ideal)), ideal), zero)
    scales = scaled(ideal, np.where(bound, sums.qq, spread), counts, search, name)
    minima = scaled(_minimum(sums, scales.value), sums.one, counts, search, name)
    return scales, minima


def _resettle(sums: Moments, minima: Scaled, counts: Levels, search: Search, name: str) -> tuple[Scaled, Scaled]:
    """As `_settle`, but scales that suit the minima as they are."""
    ideal = np.maximum(sums.best_scale(-minima.value), np.float32(0))
    scales = scaled(ideal, sums.qq, counts, search, name)
    minima = scaled(_minimum(sums, scales.value), sums.one, counts, search, name)
    return _nudge(sums, scales, minima, counts)


def _minimum(sums: Moments, scale: Floats) -> Floats:
    return np.maximum(-sums.best_offset(scale), np.float32(0))


def _nudge(sums: Moments, scales: Scaled, minima: Scaled, counts: Levels) -> tuple[Scaled, Scaled]:
    """One count more or less of scale, with the minimum that suits it, where that leaves less error."""
    least, best = sums.error(scales.value, -minima.value), (scales.count, minima.count)
    for step in (np.float32(-1), np.float32(1)):
        moved = Scaled(scales.unit, np.clip(scales.count + step, np.float32(counts[0]), np.float32(counts[-1])))
        suited = nearest(_minimum(sums, moved.value), minima.unit, counts)
        error = sums.error(moved.value, -suited.value)
        better = error < least
        least = np.where(better, error, least)
        best = np.where(better, moved.count, best[0]), np.where(better, suited.count, best[1])
    return Scaled(scales.unit, best[0]), Scaled(minima.unit, best[1])
