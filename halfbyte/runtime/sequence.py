"""`Sequence`: one run of tokens and how far it is computed."""

from __future__ import annotations

from itertools import count as counter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .pages import ROOT, Key, page_key
from .sampling.sampler import Sampler

FinishReason = Literal["stop", "length"]
"""`stop`: an end token or a stop string; `length`: `max_tokens` or the context is full."""

_arrivals = counter()


class Sequence:
    """Tokens, the pages that hold their keys and values, and how to go on.

    A sequence with a `sampler` grows by one token whenever all it has is computed; one with `scores` f32[n, V] ends
    there and has the logits of each of its tokens written into it. Between steps
    `len(pages) == ceil(num_computed / page_len)`. Smaller `arrival` came earlier; `put_back` while it waits after older
    ones took its pages. Owned by the engine's thread.
    """

    def __init__(
        self,
        prompt: NDArray[np.integer[Any]],
        *,
        max_len: int,
        page_len: int,
        eog_ids: frozenset[int] = frozenset(),
        sampler: Sampler | None = None,
        scores: NDArray[np.float32] | None = None,
    ) -> None:
        assert 0 < len(prompt) <= max_len
        assert (sampler is None) != (scores is None)
        self.arrival = next(_arrivals)
        self.ids = np.empty(max_len, np.int32)
        self.ids[: len(prompt)] = prompt
        self.num_prompt = self.num_tokens = len(prompt)
        self.num_computed = 0
        self.num_cached = 0
        self.max_len = max_len
        self.page_len = page_len
        self.pages: list[int] = []
        self.keys: list[Key] = []
        self.sampler = sampler
        self.scores = scores
        self.eog_ids = eog_ids
        self.finish_reason: FinishReason | None = None
        self.done = False
        self.put_back = False

    @property
    def num_new(self) -> int:
        """Tokens that wait to be computed; at least one unless `done`."""
        return self.num_tokens - self.num_computed

    def pages_for(self, num_tokens: int) -> int:
        """Pages that hold the first `num_tokens`."""
        return -(-num_tokens // self.page_len)

    def add_pages(self, pages: list[int]) -> None:
        """Append pages for the tokens to come."""
        self.pages.extend(pages)

    def drop_pages(self) -> list[int]:
        """Give all pages up and forget what was computed."""
        pages, self.pages = self.pages, []
        self.num_computed = 0
        return pages

    def page_keys(self, num_pages: int) -> list[Key]:
        """Keys of the first `num_pages` pages, which tokens fill."""
        while len(self.keys) < num_pages:
            start = len(self.keys) * self.page_len
            tokens = self.ids[start : start + self.page_len].tobytes()
            self.keys.append(page_key(self.keys[-1] if self.keys else ROOT, tokens))
        return self.keys[:num_pages]

    def advance(self, count: int) -> None:
        """Count `count` more tokens as computed."""
        self.num_computed += count
        self.done = self.scores is not None and self.num_computed == self.num_tokens

    def accept(self, token: int) -> None:
        """Grow by a chosen token, or end: at an end token, which is left out, or when nothing more fits."""
        assert self.sampler is not None
        if token in self.eog_ids:
            self.finish_reason = "stop"
        else:
            self.ids[self.num_tokens] = token
            self.num_tokens += 1
            self.sampler.accept(token)
            if self.num_tokens == self.max_len:
                self.finish_reason = "length"
        self.done = self.finish_reason is not None

    def check(self) -> None:
        """Raise `AssertionError` unless the invariants hold between steps."""
        assert 0 <= self.num_computed <= self.num_tokens <= self.max_len
        assert len(self.pages) == self.pages_for(self.num_computed)
