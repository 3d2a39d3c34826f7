"""A step written by the caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import RequestError
from .candidates import Candidates, reranked

Custom = Callable[[NDArray[np.int32], NDArray[Any]], tuple[Any, Any]]
"""`(ids, logits) -> (ids, logits)` over all candidates [n]: any of the ids given, in any order, with any logits."""


def custom(candidates: Candidates, step: Custom) -> Candidates:
    """What the caller's function makes of the candidates; it gets arrays of its own. NaN and -inf leave a token out.

    Raises `RequestError` for what it raises and for a result that is none.
    """
    name = getattr(step, "__name__", type(step).__name__)
    given = np.asarray(candidates.ids, np.int32)
    try:
        result = step(given.copy(), np.array(candidates.logits))
    except BaseException as error:  # whatever it leaves by, it must not take the engine's thread along
        raise RequestError(f"the sampler step {name!r} failed: {type(error).__name__}: {error}") from error
    ids, logits = _arrays(result, name)
    if not candidates.ranked and np.array_equal(ids, given):
        with np.errstate(over="ignore"):
            return candidates._replace(logits=logits.astype(np.float32))
    if len(np.unique(ids)) < len(ids) or not np.isin(ids, given).all():
        raise RequestError(f"the sampler step {name!r} returned an id twice or one that it was not given")
    return reranked(ids, logits)


def _arrays(result: object, name: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    try:
        ids, logits = (np.asarray(part) for part in result)  # type: ignore[attr-defined]
        right = ids.ndim == logits.ndim == 1 and len(ids) == len(logits) > 0
        right = right and ids.dtype.kind in "iu" and logits.dtype.kind in "iuf"
    except (TypeError, ValueError):
        right = False
    if not right:
        raise RequestError(f"the sampler step {name!r} must return (ids, logits), two arrays of one length above 0")
    return ids.astype(np.int64), logits.astype(np.float64)
