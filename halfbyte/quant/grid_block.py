"""`GridBlock`: how blocks of 256 are written whose few scales multiply a half and whose codes are points of a grid."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .bits import half_bytes, pack
from .block import Bytes, Floats
from .encoder import Search
from .points import Points, Targets, Trial

_TINY = np.float32(2.0**-100)
"""Below it weights count as zero: their inverse might not be finite."""
_LEAST_SCALE = np.float32(2.0**-60)
"""Of a group, in units of the block: smaller ones are as good as none, and multiples of theirs might overflow."""
_LEAST_SHARE = np.float32(2.0**-24)
"""What an error counts at least, so that columns no calibration saw get their own weights rather than any."""
_ROUNDS = 2
_OF_EXTREME = (0.8, 0.9, 1.0)
"""Scales to try, in units of that which puts a group's largest weight at the points' largest value."""
_OF_MEAN = (0.9, 1.1, 1.4)
"""Scales to try, in units of that which gives a group the mean square of all points."""
_LARGEST = np.float32(65504)
_ONE = np.float32(1)

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Chosen:
    """What n blocks are written with. `half` u8[n, 2] the scale of the block, the other fields in the order of weights.

    Shapes: `scales` u8[n, groups] index of the multiplier, `kinds` u8[n, groups] index of the points, `codes`
    u16[n, 256 / width], `signs` u8[n, 32] a bit for each minus, the first weight's the lowest.
    """

    half: Bytes
    scales: Bytes
    kinds: Bytes
    codes: NDArray[np.uint16]
    signs: Bytes

    @property
    def even_signs(self) -> Bytes:
        """u8[n, 32]: seven of eight signs of even parity; they tell the last."""
        return self.signs & np.uint8(127)


@dataclass(frozen=True, eq=False)
class GridBlock:
    """Blocks of `groups` scales, each one of `steps` odd multiples of `unit * half`; `kinds` are a group's points.

    Where the points' values are all positive they are magnitudes, and each weight has a sign.
    """

    name: str
    groups: int
    steps: int
    unit: float
    kinds: tuple[Points, ...]

    def choose(self, values: Floats, weights: Floats | None, search: Search) -> Chosen:
        """The best found for f32[n, 256]; raises `ConfigError` for a block whose scale is beyond half precision."""
        least = np.abs(values).max(axis=1, keepdims=True) / (self.multipliers[-1] * self.most)
        half_bytes(least, self.name)  # refuses what no scale reaches
        return _Blocks(self, values, weights, search).solve()

    @cached_property
    def multipliers(self) -> Floats:
        """f32[steps]: what the half is multiplied with."""
        return np.arange(1, 2 * self.steps, 2, dtype=np.float32) * np.float32(self.unit)

    @cached_property
    def magnitudes(self) -> bool:
        """Whether weights have signs of their own."""
        return bool((self.kinds[0].values > 0).all())

    @cached_property
    def typical(self) -> float:
        """Root mean square of all points' values."""
        return float(np.sqrt(np.mean(np.square(self.kinds[0].values, dtype=np.float64))))

    @cached_property
    def most(self) -> int:
        """Largest magnitude of a point's value."""
        return max(int(np.abs(kind.values).max()) for kind in self.kinds)


@dataclass(frozen=True)
class _Tried:
    """What groups cost under some scales: `error` f64[n, groups], `kind` and the sums f32[n, groups] of the better."""

    error: Doubles
    dot: Floats
    square: Floats
    kind: NDArray[np.intp]
    trials: list[Trial]


class _Blocks:
    """Blocks in units of their own largest magnitude; groups are columns, those of a block side by side."""

    def __init__(self, form: GridBlock, values: Floats, weights: Floats | None, search: Search) -> None:
        self.form, self.search = form, search
        self.shape = len(values), form.groups
        peak = np.abs(values).max(axis=1, keepdims=True)
        self.alive = peak >= _TINY
        self.unit: Floats = np.where(self.alive, peak, _ONE)
        self.signs = pack((values < 0).view(np.uint8), 1, 1)
        x = self._columns(values / self.unit)
        w = np.ones_like(x) if weights is None else self._columns(_shares(weights))
        odd = self._columns((np.bitwise_count(self.signs) & 1).astype(np.float32)) if form.kinds[0].even else None
        self.targets = Targets(np.abs(x) if form.magnitudes else x, w, odd)
        self.energy = (w * x * x).sum(axis=0, dtype=np.float64)

    def _columns(self, values: Floats) -> Floats:
        """f32[n, k] to f32[k / groups, n * groups]."""
        return np.ascontiguousarray(values.reshape(self.shape[0] * self.shape[1], -1).T)

    def solve(self) -> Chosen:
        """Free scales first, then a half and multiples of it near them, then what suits the codes those lead to."""
        d, scales = self._multiples(*self._free())
        best, kept = np.full(d.shape, np.inf), (d, scales)
        for _ in range(_ROUNDS):
            scales, error, fitted = self._settle(d, scales)
            better = error < best
            best = np.where(better, error, best)
            kept = np.where(better, d, kept[0]), np.where(better, scales, kept[1])
            d = self._halves(fitted)
        return self._chosen(*kept)

    def _try(self, scale: Floats) -> _Tried:
        flat = scale.reshape(-1)
        inverse: Floats = np.where(flat > _LEAST_SCALE, _ONE / np.maximum(flat, _LEAST_SCALE), np.float32(0))
        trials = [self.search.trial(self.targets, inverse, points) for points in self.form.kinds]
        exact = flat.astype(np.float64)
        errors = [self.energy - exact * (2 * trial.dot - exact * trial.square) for trial in trials]
        error, dot, square, kind = errors[0], trials[0].dot, trials[0].square, np.zeros(len(flat), np.intp)
        for other in range(1, len(trials)):
            better = errors[other] < error
            error, kind = np.where(better, errors[other], error), np.where(better, other, kind)
            dot, square = np.where(better, trials[other].dot, dot), np.where(better, trials[other].square, square)
        shape = self.shape
        return _Tried(error.reshape(shape), dot.reshape(shape), square.reshape(shape), kind.reshape(shape), trials)

    def _free(self) -> tuple[Floats, Floats]:
        """Scale of each group if it were free to choose any, and what its square's error costs: f32[n, groups] each."""
        x, w = self.targets.x, self.targets.w
        extreme = np.abs(x).max(axis=0) / np.float32(self.form.most)
        mean = np.sqrt(self.energy / np.maximum(w.sum(axis=0), _TINY)).astype(np.float32) / np.float32(
            self.form.typical
        )
        best = np.zeros(self.shape)
        scale, cost = np.zeros(self.shape, np.float32), np.zeros(self.shape, np.float32)
        for start in [*(extreme * np.float32(s) for s in _OF_EXTREME), *(mean * np.float32(s) for s in _OF_MEAN), None]:
            tried = self._try(scale if start is None else start)
            fitted = np.maximum(tried.dot, 0) / np.maximum(tried.square, _TINY)
            gain = fitted.astype(np.float64) * tried.dot
            better = gain > best
            best = np.where(better, gain, best)
            scale, cost = np.where(better, fitted, scale), np.where(better, tried.square, cost)
        return scale, cost

    def _multiples(self, scale: Floats, cost: Floats) -> tuple[Floats, NDArray[np.intp]]:
        """Half f32[n, 1] and multipliers nearest to free scales: every multiplier is tried for the largest of them."""
        largest = scale.max(axis=1, keepdims=True)
        wanted = cost * scale
        best, kept = np.full(largest.shape, np.inf, np.float32), np.zeros_like(largest)
        for multiplier in self.form.multipliers:
            m = self.form.multipliers[self._nearest(largest / multiplier, scale)]
            square = (cost * m * m).sum(axis=1, keepdims=True)
            dot = (wanted * m).sum(axis=1, keepdims=True)
            d = self._halves(dot / np.maximum(square, _TINY))
            error = d * (d * square - 2 * dot)  # less what every d costs
            better = error < best
            best, kept = np.where(better, error, best), np.where(better, d, kept)
        return kept, self._nearest(kept, scale)

    def _nearest(self, d: Floats, scale: Floats) -> NDArray[np.intp]:
        """Index of the multiplier of d f32[n, 1] nearest to each scale."""
        at = scale * (_ONE / (np.maximum(d, _TINY) * np.float32(2 * self.form.unit))) - np.float32(0.5)
        index: NDArray[np.intp] = np.rint(np.clip(at, 0, self.form.steps - 1)).astype(np.intp)
        return index

    def _halves(self, d: Floats) -> Floats:
        """As half precision will have it, still in units of the block."""
        halves = np.minimum(d * self.unit, _LARGEST).astype(np.float16).astype(np.float32)
        rounded: Floats = halves / self.unit
        return rounded

    def _settle(self, d: Floats, scales: NDArray[np.intp]) -> tuple[NDArray[np.intp], Doubles, Floats]:
        """Multipliers of least error around the given ones, the error of each block and the d that suits it then."""
        error, chosen = np.full(self.shape, np.inf), scales
        dot, square = np.zeros(self.shape, np.float32), np.zeros(self.shape, np.float32)
        for step in (0, -1, 1):
            index = np.clip(scales + step, 0, self.form.steps - 1)
            tried = self._try(d * self.form.multipliers[index])
            better = tried.error < error
            error, chosen = np.where(better, tried.error, error), np.where(better, index, chosen)
            dot, square = np.where(better, tried.dot, dot), np.where(better, tried.square, square)
        m = self.form.multipliers[chosen]
        total = (m * m * square).sum(axis=1, keepdims=True)
        fitted = (m * dot).sum(axis=1, keepdims=True) / np.maximum(total, _TINY)
        return chosen, error.sum(axis=1, keepdims=True), fitted

    def _chosen(self, d: Floats, scales: NDArray[np.intp]) -> Chosen:
        d, scales = d * self.alive, scales * self.alive
        tried = self._try(d * self.form.multipliers[scales])
        codes = np.choose(tried.kind.reshape(-1), [trial.codes for trial in tried.trials])
        signs, wrong = self.signs, tried.trials[0].wrong
        if wrong is not None:
            eights = wrong.T.reshape(signs.shape)
            signs = np.where(eights < 0, signs, signs ^ np.left_shift(1, np.maximum(eights, 0)).astype(np.uint8))
        field = half_bytes(d * self.unit, self.form.name)
        return Chosen(
            field, scales.astype(np.uint8), tried.kind.astype(np.uint8), codes.T.reshape(len(signs), -1), signs
        )


def _shares(weights: Floats) -> Floats:
    """Weights of errors in units of the largest of the block; all alike where none counts."""
    most = weights.max(axis=1, keepdims=True)
    shares: Floats = np.maximum(weights * (_ONE / np.maximum(most, _TINY)), _LEAST_SHARE)
    return shares
