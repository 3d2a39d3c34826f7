"""Whether two models mean the same by a token id."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...errors import ConfigError
from ...runtime.bare import BareModel


def token_difference(own: Sequence[str], other: Sequence[str]) -> str:
    """What differs between two lists of tokens, in words; empty where nothing does."""
    if len(own) != len(other):
        return f"{len(own)} and {len(other)} tokens"
    unlike = (i for i, (a, b) in enumerate(zip(own, other, strict=True)) if a != b)
    first = next(unlike, None)
    return "" if first is None else f"token {first} is {own[first]!r} and {other[first]!r}"


def check_alike(model: BareModel, base: BareModel, ids: NDArray[np.int32], text: str) -> None:
    """Raise `ConfigError` unless both give logits for the same tokens and read `text` as the same `ids`."""
    problem = _difference(model, base, ids, text)
    if problem:
        raise ConfigError(
            f"{model.path} and {base.path} have different vocabularies ({problem}), so their probabilities cannot be "
            "compared: take a base of the same model family",
            key="base",
        )


def _difference(model: BareModel, base: BareModel, ids: NDArray[np.int32], text: str) -> str:
    tokens = token_difference(model.tokenizer.vocabulary.tokens, base.tokenizer.vocabulary.tokens)
    if tokens:
        return tokens
    if model.vocab_size != base.vocab_size:
        return f"{model.vocab_size} and {base.vocab_size} logits"
    other = np.array(base.tokenizer.encode(text, eos=False), np.int32)
    if len(other) != len(ids):
        return f"the text has {len(ids)} tokens and {len(other)}"
    unlike = np.flatnonzero(ids != other)
    return f"token {unlike[0]} of the text is {ids[unlike[0]]} and {other[unlike[0]]}" if len(unlike) else ""
