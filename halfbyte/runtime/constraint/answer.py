"""`answer_of`: what a caller gets who asked for an object."""

from __future__ import annotations

from typing import Any

from ...errors import IncompleteAnswerError
from ..completion import Completion
from .wish import Constraint


def answer_of(completion: Completion, constraint: Constraint | None) -> Any:
    """The completion, or where its `schema` was a class an object of that class.

    Raises `IncompleteAnswerError` for an answer that was cut, `RequestError` for one that the class itself refuses.
    """
    if constraint is None or constraint.parse is None or not constraint.returns:
        return completion
    if completion.finish_reason == "length":
        raise IncompleteAnswerError(
            f"the answer was cut after {len(completion.ids)} tokens, before it was what its schema describes: raise "
            "max_tokens or the context",
            completion=completion,
        )
    return constraint.parse(completion.text)
