"""`Completion` and its parts `StreamEvent`: what a request gives back."""

from __future__ import annotations

from dataclasses import dataclass

from .sequence import FinishReason
from .timings import Timings


@dataclass(frozen=True)
class StreamEvent:
    """A piece of an answer: whole characters only, and the tokens since the event before.

    The last event alone has `finish_reason` and `timings`, and maybe no text.
    """

    text: str
    ids: tuple[int, ...]
    finish_reason: FinishReason | None = None
    timings: Timings | None = None


@dataclass(frozen=True)
class Completion:
    """A whole answer. End tokens are not among `ids`; a stop string is not in `text`.

    `seed` gives the same answer again where tokens were drawn.
    """

    text: str
    ids: tuple[int, ...]
    finish_reason: FinishReason
    timings: Timings
    prompt_ids: tuple[int, ...]
    seed: int
