"""Scales of groups as small integers times one half-precision unit a block, chosen for the error they leave.

Three choices hang together: the codes of the weights, the integers and the units. `Moments` tell the error of any
integers and units while codes stay, so a round fixes the codes, looks for better integers and units, and keeps them
where they are better: the error never rises from round to round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .bits import half, half_bytes
from .block import Bytes, Floats
from .encoder import Levels, Search
from .moments import Doubles, Moments, moments

Counts = NDArray[np.int16]
"""How many units, i16[n, groups]."""


@dataclass(frozen=True)
class Scaled:
    """`unit * count` for each group: `unit` f32[n, 1] as half precision has it, in bytes `field` u8[n, 2]."""

    unit: Floats
    field: Bytes
    count: Counts

    @property
    def value(self) -> Floats:
        """f32[n, groups], rounded once, as every format decodes it."""
        return self.unit * self.count

    def where(self, better: NDArray[np.bool_], other: Scaled) -> Scaled:
        """Itself where `better` bool[n, 1], elsewhere the other."""
        return Scaled(
            np.where(better, self.unit, other.unit),
            np.where(better, self.field, other.field),
            np.where(better, self.count, other.count),
        )


def nearest(ideal: Doubles, unit: Floats, field: Bytes, counts: Levels) -> Scaled:
    """The counts of `counts` (consecutive) nearest to f64[n, groups]."""
    ratio = np.divide(ideal, unit, out=np.zeros_like(ideal), where=unit != 0)
    return Scaled(unit, field, np.clip(np.rint(ratio), counts[0], counts[-1]).astype(np.int16))


def scaled(ideal: Doubles, weight: Doubles, counts: Levels, search: Search, name: str) -> Scaled:
    """Units and counts nearest to `ideal` f64[n, groups]; `weight` says how much the square of a miss counts."""
    unit = search.scale(ideal.astype(np.float32), weight.astype(np.float32), counts)[:, None]
    field = half_bytes(unit, name)
    best = nearest(ideal, half(field, 0), field, counts)
    least = _miss(ideal, weight, best)
    # The nearest half need not be best where halves are coarse, as they are for units below 2^-14.
    for step in (-1, 1):
        other = _neighbour(field, step)
        moved = nearest(ideal, half(other, 0), other, counts)
        miss = _miss(ideal, weight, moved)
        best, least = moved.where(miss < least, best), np.minimum(miss, least)
    return best


def _miss(ideal: Doubles, weight: Doubles, found: Scaled) -> Doubles:
    miss: Doubles = np.einsum("ng,ng->n", weight, np.square(ideal - found.value))
    return miss[:, None]


def _neighbour(field: Bytes, step: int) -> Bytes:
    """u8[n, 2]: the next half away from zero or towards it; the same one where that would be none."""
    bits = field.view("<i2") & np.int16(0x7FFF)
    moved = field.view("<i2") + np.where((bits + step >= 0) & (bits + step < 0x7C00), np.int16(step), np.int16(0))
    return moved.astype("<i2").view(np.uint8)


def fit_scales(
    x: Floats, w: Floats, levels: Levels, counts: Levels, groups: int, rounds: int, search: Search, name: str
) -> Scaled:
    """Scales alone, for x, w f32[n * groups, L]."""
    ideal = search.scale(x, w, levels)
    sums = moments(x, w, search.codes(x, ideal, None, levels), levels, groups)
    best = scaled(ideal.reshape(-1, groups).astype(np.float64), sums.qq, counts, search, name)
    for _ in range(rounds):
        sums = moments(x, w, search.codes(x, best.value.reshape(-1), None, levels), levels, groups)
        other = scaled(_ratio(sums.qx, sums.qq, best.value), sums.qq, counts, search, name)
        better = _error(sums, other) < _error(sums, best)
        best = other.where(better[:, None], best)
    return best


def _ratio(above: Doubles, below: Doubles, otherwise: Floats | Doubles) -> Doubles:
    return np.divide(above, below, out=otherwise.astype(np.float64), where=below > 0)


def fit_affine(
    x: Floats, w: Floats, levels: Levels, counts: Levels, groups: int, rounds: int, search: Search, name: str
) -> tuple[Scaled, Scaled]:
    """Scales and what is subtracted, for x, w f32[n * groups, L]; `counts` serve both and start from 0."""
    scale, offset = search.affine(x, w, len(levels) - 1, 0.0)
    sums = moments(x, w, search.codes(x, scale, offset, levels), levels, groups)
    best = _settle(sums, scale.reshape(-1, groups), counts, search, name)
    for _ in range(rounds):
        codes = search.codes(x, best[0].value.reshape(-1), -best[1].value.reshape(-1), levels)
        sums = moments(x, w, codes, levels, groups)
        other = _settle(sums, best[0].value, counts, search, name)
        better = (_error(sums, *other) < _error(sums, *best))[:, None]
        best = other[0].where(better, best[0]), other[1].where(better, best[1])
    return best


def _error(sums: Moments, scale: Scaled, minimum: Scaled | None = None) -> Doubles:
    offset = np.zeros((1, 1)) if minimum is None else -minimum.value
    error: Doubles = sums.error(scale.value, offset).sum(axis=1)
    return error


def _settle(sums: Moments, scale: Floats, counts: Levels, search: Search, name: str) -> tuple[Scaled, Scaled]:
    """Scales and minima for codes as they are, scales first: each group's best, then units, then minima for those."""
    spread = sums.qq - sums.q * _ratio(sums.q, sums.one, np.zeros_like(scale))
    steep = np.where(spread > 1e-6 * sums.qq, spread, 0)
    ideal = _ratio(sums.qx - sums.q * _ratio(sums.x, sums.one, np.zeros_like(scale)), steep, scale)
    free = np.minimum(_ratio(sums.x - ideal * sums.q, sums.one, np.zeros_like(scale)), 0)
    ideal = np.maximum(np.where(free < 0, ideal, _ratio(sums.qx, sums.qq, scale)), 0)
    scales = scaled(ideal, np.where(free < 0, steep, sums.qq), counts, search, name)
    minima = scaled(_minimum(sums, scales.value), sums.one, counts, search, name)
    return _nudge(sums, scales, minima, counts)


def _minimum(sums: Moments, scale: Floats) -> Doubles:
    return np.maximum(_ratio(scale * sums.q - sums.x, sums.one, np.zeros_like(scale)), 0)


def _nudge(sums: Moments, scales: Scaled, minima: Scaled, counts: Levels) -> tuple[Scaled, Scaled]:
    """One count more or less of scale, with the minimum that suits it, where that leaves less error."""
    least, best = sums.error(scales.value, -minima.value), (scales.count, minima.count)
    for step in (-1, 1):
        count = np.clip(scales.count + np.int16(step), counts[0], counts[-1])
        moved = Scaled(scales.unit, scales.field, count)
        suited = nearest(_minimum(sums, moved.value), minima.unit, minima.field, counts)
        error = sums.error(moved.value, -suited.value)
        better = error < least
        least = np.where(better, error, least)
        best = np.where(better, count, best[0]), np.where(better, suited.count, best[1])
    return Scaled(scales.unit, scales.field, best[0]), Scaled(minima.unit, minima.field, best[1])
