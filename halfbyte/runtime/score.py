"""`Score`: how likely the model finds a text."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .engine import TokenIds
from .sampling.candidates import Select
from .sampling.logprobs import TokenLogprobs, score_rows


@dataclass(frozen=True)
class Score:
    """Log probabilities of `ids[1:]`, one by one; nothing comes before the first token, so it has none."""

    ids: tuple[int, ...]
    tokens: tuple[TokenLogprobs, ...]

    @property
    def logprob(self) -> float:
        """Natural logarithm of the probability of the whole text."""
        return math.fsum(token.logprob for token in self.tokens)

    @property
    def perplexity(self) -> float:
        """Of the tokens behind the first; 1 where there are none."""
        return math.exp(-self.logprob / max(len(self.tokens), 1))


class ScoreReader:
    """Reads the scores of `ids` [n] off their rows; keeps `k` alternatives a token and no rows."""

    def __init__(self, ids: TokenIds, k: int, select: Select) -> None:
        self._ids = ids
        self._k = k
        self._select = select
        self._tokens: list[TokenLogprobs] = []

    def read(self, start: int, rows: NDArray[np.float32]) -> None:
        """Score the tokens behind a chunk's; behind the last there is none."""
        following = self._ids[start + 1 : start + 1 + len(rows)]
        self._tokens += score_rows(rows[: len(following)], following, self._k, self._select)

    def score(self) -> Score:
        """What was read, once all was."""
        return Score(tuple(self._ids.tolist()), tuple(self._tokens))
