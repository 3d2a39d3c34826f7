"""`Completion` and its parts `StreamEvent`: what a request gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .sampling.logprobs import TokenLogprobs
from .sequence import FinishReason
from .timings import Timings


@dataclass(frozen=True)
class StreamEvent:
    """A piece of an answer: whole characters only, and the tokens since the event before.

    The last event alone has `finish_reason` and `timings`, and maybe no text. `logprobs` has an entry for each of
    `ids` where the option asks for it.
    """

    text: str
    ids: tuple[int, ...]
    finish_reason: FinishReason | None = None
    timings: Timings | None = None
    logprobs: tuple[TokenLogprobs, ...] = ()


@dataclass(frozen=True)
class Completion:
    """A whole answer. End tokens are not among `ids`; a stop string is not in `text`.

    `seed` gives the same answer again where tokens were drawn. `logprobs` has an entry for each of `ids` where the
    option asks for it. `parsed` is what the text says where it follows a `schema` to its end: data, or an object of the
    class that was given.
    """

    text: str
    ids: tuple[int, ...]
    finish_reason: FinishReason
    timings: Timings
    prompt_ids: tuple[int, ...]
    seed: int
    logprobs: tuple[TokenLogprobs, ...] = ()
    parsed: Any = None
