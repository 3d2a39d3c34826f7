"""What is wrong with sampling parameters that are no numbers, in words; None where nothing is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real

from ...errors import nearest
from .parameters import MOST

MOST_BREAKERS = 64


def bias_problem(bias: object) -> str | None:
    """A mapping of token ids to numbers."""
    if not isinstance(bias, Mapping):
        return f"must map token ids to numbers, not be {bias!r}"
    for token, value in bias.items():
        if isinstance(token, bool) or not isinstance(token, Integral) or token < 0:
            return f"must map token ids to numbers; {token!r} is no token id"
        right = isinstance(value, Real) and not isinstance(value, bool)
        if not right or not (value == -math.inf or abs(value) <= MOST):
            return f"must be -inf or from {-MOST:g} up to {MOST:g} for token {token}, not {value!r}"
    return None


def order_problem(samplers: object, known: Iterable[str]) -> str | None:
    """Names of steps and functions, none of them twice."""
    if isinstance(samplers, str) or not isinstance(samplers, Sequence):
        return f"must be a list of names of steps and of functions, not {samplers!r}"
    names = list(known)
    for place, step in enumerate(samplers):
        if not callable(step) and step not in names:
            hint = nearest(str(step), names) or f"; known: {', '.join(names)}"
            return f"has no step {step!r}{hint}"
        if step in samplers[:place]:
            return f"must have each step once, not {step!r} twice"
    return None


def breakers_problem(texts: object) -> str | None:
    """Texts, none of them empty."""
    right = isinstance(texts, Sequence) and not isinstance(texts, str) and len(texts) <= MOST_BREAKERS
    if not right or not all(map(_is_breaker, texts if isinstance(texts, Sequence) else ())):
        return f"must be a list of at most {MOST_BREAKERS} strings, none of them empty, not {texts!r}"
    return None


def _is_breaker(text: object) -> bool:
    return isinstance(text, str) and text != "" and not any("\ud800" <= char <= "\udfff" for char in text)
