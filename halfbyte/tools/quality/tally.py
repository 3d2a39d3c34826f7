"""`Tally`: figures of a text gathered token by token."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .figures import Divergence, Figures
from .mean import Mean
from .softmax import Softmax


class Tally:
    """Keeps four bytes a token, the divergences, whose percentiles need all of them; nothing where there is no base."""

    def __init__(self, tokens: int, has_base: bool) -> None:
        self._surprise, self._base_surprise, self._kld = Mean(), Mean(), Mean()
        self._klds: NDArray[np.float32] | None = np.zeros(tokens, np.float32) if has_base else None
        self._agreed = 0

    def add(self, token: int, model: Softmax, base: Softmax | None) -> None:
        """Score the prediction of `token`."""
        if base is not None:
            assert self._klds is not None
            kld = base.divergence(model)
            self._klds[self._kld.count] = kld
            self._kld.add(kld)
            self._base_surprise.add(base.surprise(token))
            self._agreed += base.best == model.best
        self._surprise.add(model.surprise(token))

    def figures(self, windows: int) -> Figures:
        """The sums of all that was added."""
        perplexity, error = _perplexity(self._surprise)
        return Figures(self._surprise.count, windows, perplexity, error, self._divergence())

    def _divergence(self) -> Divergence | None:
        if self._klds is None:
            return None
        median, p99 = np.quantile(self._klds, (0.5, 0.99), overwrite_input=True)
        perplexity, error = _perplexity(self._base_surprise)
        return Divergence(
            base_perplexity=perplexity,
            base_perplexity_se=error,
            mean_kld=self._kld.value,
            mean_kld_se=self._kld.error,
            median_kld=float(median),
            p99_kld=float(p99),
            max_kld=float(self._klds.max()),
            top1=self._agreed / self._kld.count,
        )


def _perplexity(surprise: Mean) -> tuple[float, float]:
    """Perplexity and its standard error, which is that of the mean times the slope of the exponential."""
    try:
        perplexity = math.exp(surprise.value)
    except OverflowError:
        perplexity = math.inf
    return perplexity, perplexity * surprise.error
