"""`read_prompts`: the texts of a request, one or several, as strings or as token ids."""

from __future__ import annotations

from typing import Any

from .errors import invalid
from .fields import Fields

Text = str | list[int]


def read_prompts(fields: Fields, name: str, most: int) -> list[Text]:
    """A string, token ids, or a list of either. Raises `ApiError` for anything else, for none and for too many."""
    value = fields.take(name)
    if isinstance(value, str) or _are_ids(value):
        return [value]
    if not isinstance(value, list) or not value or not all(isinstance(one, str) or _are_ids(one) for one in value):
        raise fields.wrong(name, "a string, a list of token ids, or a list of these, none of them empty", value)
    if len(value) > most:
        raise invalid(f"{name} has {len(value)} texts, and at most {most} are taken at once", name)
    return value


def _are_ids(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) > 0
        and all(isinstance(one, int) and not isinstance(one, bool) and -(2**63) <= one < 2**63 for one in value)
    )
