"""`TokenLogprobs`: how likely the model found a token and the best alternatives."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .candidates import Select
from .whole_row import log_sum_exp


class TokenLogprobs(NamedTuple):
    """Natural logarithms of probabilities that the model gave, before any step of sampling.

    `top` holds `(token, log probability)` of the most probable tokens, best first; `token` need not be among them.
    """

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


def read(row: NDArray[np.float32], token: int, k: int, select: Select) -> TokenLogprobs:
    """Of `token` and the `k` best of the row f32[V], which stays as it is; `k` 0 is none.

    Raises `RequestError` where the best logit is not a finite number.
    """
    whole = log_sum_exp(row)
    top: tuple[tuple[int, float], ...] = ()
    if k > 0:
        ids, logits = select(row, min(k, len(row)))
        top = tuple((token, logit - whole) for token, logit in zip(ids.tolist(), logits.tolist(), strict=True))
    return TokenLogprobs(int(token), float(row[token]) - whole, top)


def score_rows(
    rows: NDArray[np.float32], next_ids: NDArray[np.integer[Any]], k: int, select: Select
) -> list[TokenLogprobs]:
    """`read` of each row of f32[R, V] and the token that follows it i32[R]. Memory does not grow with R or V."""
    return [read(row, token, k, select) for row, token in zip(rows, next_ids.tolist(), strict=True)]
