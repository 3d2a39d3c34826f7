"""What a caller may give as a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np

from ..errors import RequestError
from .engine import TokenIds

Prompt = str | Sequence[int] | TokenIds
"""Text, whose control tokens are plain text, or token ids."""

Prompts = list[str] | list[list[int]] | list[TokenIds] | tuple[str, ...]
"""Several prompts: a list or tuple of them."""

Messages = Sequence[Mapping[str, Any]]
"""`{"role": "user", "content": "..."}` and so on, oldest first."""


def are_many(prompt: Prompt | Prompts) -> TypeGuard[Prompts]:
    """Whether there are several prompts."""
    return isinstance(prompt, (list, tuple)) and len(prompt) > 0 and all(map(_is_one, prompt))


def are_messages(prompt: object) -> TypeGuard[Messages]:
    """Whether it is a conversation for the chat template."""
    return isinstance(prompt, (list, tuple)) and len(prompt) > 0 and all(isinstance(m, Mapping) for m in prompt)


def _is_one(part: object) -> bool:
    return isinstance(part, (str, list, tuple)) or (isinstance(part, np.ndarray) and part.ndim == 1)


def token_ids(ids: object) -> TokenIds:
    """Whole numbers [n]; whether the vocabulary has them is the engine's to say. Raises `RequestError`."""
    try:
        array = np.asarray(ids)
    except (TypeError, ValueError):
        array = np.empty((0, 0))
    if array.ndim != 1 or (array.size > 0 and array.dtype.kind not in "iu"):
        raise RequestError(f"a prompt is text or a flat list of token ids, not {repr(ids)[:80]}")
    return array
