"""`Scheduler`: which tokens are computed next.

There are no phases: every sequence has tokens that wait to be computed, and a step computes some of them. Sequences
with one token to go come first, so that answers under way keep their pace; prompts fill the rest of the budget in
chunks.

Progress: a sequence may hold pages only until an older one needs them; then it starts over later (most of its pages
stay cached, so little is computed twice). The oldest is never put back, and alone it always fits, so every sequence
ends.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Mapping
from operator import attrgetter

from .pages import PagePool
from .sequence import Sequence
from .step import Share, StepPlan

_arrival = attrgetter("arrival")


class Scheduler:
    """Sequences waiting and running, both oldest first, over one `PagePool`. Used by one thread.

    A step has at most `max_num_batched_tokens` tokens of at most `max_num_seqs` sequences.
    """

    def __init__(self, pool: PagePool, *, max_num_seqs: int, max_num_batched_tokens: int) -> None:
        assert max_num_seqs <= max_num_batched_tokens, "a prompt could wait for ever behind others' answers"
        self.pool = pool
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self._max_num_seqs = max_num_seqs
        self._budget = max_num_batched_tokens
        self._scored_last = False

    @property
    def idle(self) -> bool:
        """Whether nothing is left to compute."""
        return not (self.waiting or self.running)

    def add(self, sequence: Sequence) -> None:
        """Queue a sequence that the pool can hold whole."""
        assert sequence.pages_for(sequence.max_len) <= self.pool.n_pages
        insort(self.waiting, sequence, key=_arrival)

    def remove(self, sequence: Sequence) -> None:
        """Take a sequence out, wherever it is, and free its pages; one that is gone already is left alone."""
        if sequence in self.running:
            self.running.remove(sequence)
        elif sequence in self.waiting:
            self.waiting.remove(sequence)
        sequence.done = True
        self.pool.release(sequence.drop_pages())

    def schedule(self) -> StepPlan:
        """The next step; it has shares whenever something is left to compute."""
        self._admit()
        growing = [s for s in self.running if s.scores is None]
        if len(growing) > 1:
            growing.sort(key=lambda s: s.num_new > 1)
        # The logits of every token of a chunk are written straight to their place, so such a chunk is a step of its
        # own; the two kinds take turns.
        turns = [growing, [s for s in self.running if s.scores is not None][:1]]
        if not self._scored_last:
            turns.reverse()
        for sequences in turns:
            shares = self._share_out(sequences)
            if shares:
                self._scored_last = sequences is not growing
                return StepPlan(shares)
        assert self.idle, "sequences are left but none can go on"
        return StepPlan([])

    def commit(self, plan: StepPlan, tokens: Mapping[int, int]) -> None:
        """Record that `plan` was computed and that `tokens` (by arrival) were chosen; free what has ended."""
        for sequence, num_tokens, _ in plan.shares:
            if sequence.done:
                continue
            full = sequence.num_computed // sequence.page_len
            sequence.advance(num_tokens)
            now_full = sequence.num_computed // sequence.page_len
            if now_full > full:
                keys = sequence.page_keys(now_full)
                for page, key in zip(sequence.pages[full:now_full], keys[full:], strict=True):
                    self.pool.remember(page, key)
            token = tokens.get(sequence.arrival)
            if token is not None:
                sequence.accept(token)
            if sequence.done:
                self.remove(sequence)

    def check_integrity(self) -> None:
        """Raise `AssertionError` unless pool, queues and sequences agree."""
        self.pool.check_integrity()
        for sequence in (*self.running, *self.waiting):
            sequence.check()
        assert not any(sequence.pages for sequence in self.waiting)
        assert self.pool.num_used == len({page for sequence in self.running for page in sequence.pages})
        assert list(self.running) == sorted(self.running, key=_arrival)
        assert list(self.waiting) == sorted(self.waiting, key=_arrival)

    def _admit(self) -> None:
        while self.waiting and len(self.running) < self._max_num_seqs:
            sequence = self.waiting[0]
            matched = self._match(sequence)
            self.pool.share(matched)
            promised = sum(s.pages_for(s.num_tokens) - len(s.pages) for s in self.running)
            needed = sequence.pages_for(sequence.num_tokens) - len(matched)
            if self.running and self.pool.available < promised + needed:
                self.pool.release(matched)
                return
            self.waiting.popleft()
            sequence.add_pages(matched)
            sequence.num_computed = len(matched) * sequence.page_len
            if not sequence.put_back:
                sequence.num_cached = sequence.num_computed
            sequence.put_back = False
            insort(self.running, sequence, key=_arrival)

    def _match(self, sequence: Sequence) -> list[int]:
        if sequence.scores is not None:
            return []
        # The last token is always computed: its logits are wanted.
        whole = (sequence.num_tokens - 1) // sequence.page_len
        return self.pool.match(sequence.page_keys(whole))

    def _share_out(self, sequences: list[Sequence]) -> list[Share]:
        shares: list[Share] = []
        budget = self._budget
        for sequence in sequences:
            if budget == 0:
                break
            if sequence.put_back:
                continue
            num_tokens = min(sequence.num_new, budget)
            if self._make_room(sequence, num_tokens):
                shares = [share for share in shares if not share.sequence.put_back]
                budget = self._budget - sum(share.num_tokens for share in shares)
            if not sequence.put_back:
                num_rows = num_tokens if sequence.scores is not None else int(num_tokens == sequence.num_new)
                shares.append(Share(sequence, num_tokens, num_rows))
                budget -= num_tokens
        return shares

    def _make_room(self, sequence: Sequence, num_tokens: int) -> bool:
        """Take pages for `num_tokens` more tokens; True where that put sequences back, maybe this one itself."""
        missing = sequence.pages_for(sequence.num_computed + num_tokens) - len(sequence.pages)
        if missing <= self.pool.available:
            if missing > 0:
                sequence.add_pages([self.pool.take() for _ in range(missing)])
            return False
        while missing > self.pool.available and not sequence.put_back:
            self._put_back(self.running[-1])
        if not sequence.put_back:
            sequence.add_pages([self.pool.take() for _ in range(missing)])
        return True

    def _put_back(self, sequence: Sequence) -> None:
        sequence.put_back = True
        self.running.remove(sequence)
        self.pool.release(sequence.drop_pages())
        insort(self.waiting, sequence, key=_arrival)
