"""`Sequence`: one run of tokens and how far it is computed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count as counter
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .adapters import NO_ADAPTERS, AdapterUse
from .cache.prefix_tree import Place
from .reader import RowReader
from .sampling.candidates import Best
from .sampling.logprobs import TokenLogprobs
from .sampling.sampler import Sampler

FinishReason = Literal["stop", "length"]
"""`stop`: an end token, a stop string or the end of a grammar; `length`: `max_tokens` or the context is full."""

PATIENCE_S = 30.0
"""Seconds of waiting that weigh as much as one step of priority."""

_arrivals = counter()


class Chosen(NamedTuple):
    """A token that a sequence chose, and how likely it was where that is asked for."""

    token: int
    logprobs: TokenLogprobs | None = None


class Sequence:
    """Tokens, the pages that hold their keys and values, and how to go on.

    A sequence with a `sampler` grows by a token or more whenever all it has is computed; one with a `reader` ends there
    and shows it the logits of each of its tokens. Between steps `len(pages) == ceil(num_computed / page_len)`. `drafts`
    are tokens that may come next: they stand in `ids` behind the first `num_tokens` and are computed along to find out.
    `place` is where the prefix tree holds its full pages. While `put_back` its pages were taken for others; those of
    the first `num_swapped` tokens then wait in the `swap` places. `gone` once the scheduler has let go of it, when
    `ended_at` is its last place. `answer_at` is where the answer begins that it or its origin gives. Owned by the
    engine's thread.
    """

    def __init__(
        self,
        prompt: NDArray[np.integer[Any]],
        *,
        max_len: int,
        page_len: int,
        eog_ids: frozenset[int] = frozenset(),
        sampler: Sampler | None = None,
        reader: RowReader | None = None,
        priority: int = 0,
        submitted_at: float = 0.0,
        adapters: AdapterUse = NO_ADAPTERS,
    ) -> None:
        assert 0 < len(prompt) <= max_len
        assert (sampler is None) != (reader is None)
        self.arrival = next(_arrivals)
        self.priority = priority
        self.rank = (submitted_at + PATIENCE_S * priority, self.arrival)
        self.ids = np.empty(max_len, np.int32)
        self.ids[: len(prompt)] = prompt
        self.num_prompt = self.num_tokens = self.answer_at = len(prompt)
        self.num_computed = 0
        self.num_cached = 0
        self.num_swapped = 0
        self.swap: list[int] = []
        self.drafts = self.num_drafted = self.num_accepted = 0
        self.max_len = max_len
        self.page_len = page_len
        self.adapters = adapters
        self.pages: list[int] = []
        self.place: Place | None = None
        self.ended_at: Place | None = None
        self.origin: Sequence | None = None
        self.sampler = sampler
        self.reader = reader
        self.eog_ids = eog_ids
        self.finish_reason: FinishReason | None = None
        self.done = False
        self.gone = False
        self.put_back = False

    @property
    def seed(self) -> bytes:
        """Where its text begins in the prefix tree."""
        return self.adapters.seed

    @property
    def num_new(self) -> int:
        """Tokens that wait to be computed, drafts not counted; at least one unless `done`."""
        return self.num_tokens - self.num_computed

    def pages_for(self, num_tokens: int) -> int:
        """Pages that hold the first `num_tokens`."""
        return -(-num_tokens // self.page_len)

    def drop_pages(self) -> list[int]:
        """Give all pages up and forget what was computed."""
        pages, self.pages = self.pages, []
        self.num_computed = self.drafts = 0
        self.place = None
        return pages

    def trim_pages(self) -> list[int]:
        """Give up the pages behind what is computed."""
        keep = self.pages_for(self.num_computed)
        if keep == len(self.pages):
            return []
        self.pages, dropped = self.pages[:keep], self.pages[keep:]
        return dropped

    def label(self, page: int) -> bytes:
        """The tokens of a page as the prefix tree knows them."""
        return self.ids[page * self.page_len : (page + 1) * self.page_len].tobytes()

    def labels(self, stop: int) -> Iterator[bytes]:
        """Labels of the pages before `stop`."""
        return map(self.label, range(stop))

    def fork(self, num_tokens: int, *, max_len: int, sampler: Sampler, priority: int, submitted_at: float) -> Self:
        """A sequence that starts with the first `num_tokens` of this one, which its pages may be shared from."""
        assert 0 < num_tokens <= self.num_tokens
        child = type(self)(
            self.ids[:num_tokens],
            max_len=max_len,
            page_len=self.page_len,
            eog_ids=self.eog_ids,
            sampler=sampler,
            priority=priority,
            submitted_at=submitted_at,
            adapters=self.adapters,
        )
        child.origin = self
        return child

    def propose(self, tokens: list[int]) -> None:
        """Let `tokens` be computed along, as many as fit."""
        assert self.sampler is not None
        room = self.max_len - self.num_tokens - 1
        self.drafts = min(len(tokens), room)
        self.ids[self.num_tokens : self.num_tokens + self.drafts] = tokens[: self.drafts]

    def grow(self, rows: NDArray[np.float32], bests: list[Best | None]) -> list[Chosen]:
        """Choose tokens by `rows` f32[1 + drafts, V] while each is the one drafted; `drafts` becomes how many were.

        The tokens are those that would have been chosen one by one, and behind them those that nothing else could
        follow, which wait to be computed together. `bests` has what the sampler `selects` of each row.
        """
        assert self.sampler is not None
        chosen: list[Chosen] = []
        for row, best in zip(rows, bests, strict=True):
            expected = self.ids[self.num_tokens] if len(chosen) < self.drafts else -1
            token = self.sampler.sample(row, self.num_tokens, best)
            chosen.append(Chosen(token, self.sampler.last_logprobs))
            self.accept(token)
            if self.done or token != expected:
                break
        self.drafts = len(chosen) - 1
        for token in () if self.done else self.sampler.forced():
            chosen.append(Chosen(token))
            self.accept(token)
            if self.done:
                break
        self.sampler.prepare()
        return chosen

    def advance(self, count: int) -> None:
        """Count `count` more tokens as computed."""
        self.num_computed += count
        self.done |= self.reader is not None and self.num_computed == self.num_tokens

    def accept(self, token: int) -> None:
        """Grow by a chosen token, or end: at an end token, which is left out, or when nothing more fits."""
        assert self.sampler is not None
        if token in self.eog_ids:
            self.finish_reason = "stop"
        else:
            self.ids[self.num_tokens] = token
            self.num_tokens += 1
            self.sampler.accept(token)
            if self.sampler.ended:
                self.finish_reason = "stop"
            elif self.num_tokens == self.max_len:
                self.finish_reason = "length"
        self.done = self.finish_reason is not None

    def check(self) -> None:
        """Raise `AssertionError` unless the invariants hold between steps."""
        assert 0 <= self.num_computed <= self.num_tokens <= self.max_len
        assert len(self.pages) == self.pages_for(self.num_computed)
        assert self.drafts == 0
        assert self.place is None or self.place.depth <= self.num_computed // self.page_len
        assert self.put_back or not self.swap
