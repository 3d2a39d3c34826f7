"""`Scheduler`: which tokens are computed next.

There are no phases: every sequence has tokens that wait to be computed, and a step computes some of them. Sequences
with one token to go come first, so that answers under way keep their pace; prompts fill the rest of the budget in
chunks.

Sequences are ranked: who came earlier comes first, a step of priority weighs as much as `PATIENCE_S` of waiting, and so
everybody becomes first in the end. Progress: a sequence may hold pages only until a better ranked one needs them; then
it goes on later, from swap or from what is cached. The first is never put back, and alone it always fits, so every
sequence ends.

No clock, no input, no output: the same calls give the same plans.
"""

from __future__ import annotations

from bisect import insort
from operator import attrgetter

from .cache.pages import PagePool
from .cache.prefix_tree import Place
from .cache.swap_places import SwapPlaces
from .sequence import Sequence
from .step import Share, StepPlan

_rank = attrgetter("rank")

SWAP_FROM = 64
"""Computed tokens from which a sequence goes to swap rather than being computed again."""


class Scheduler:
    """Sequences waiting and running, both best ranked first, over one `PagePool`. Used by one thread.

    A step has at most `max_num_batched_tokens` tokens of at most `max_num_seqs` sequences; of the tokens of readers,
    which want the logits of each, at most `max_read_rows`.
    """

    def __init__(
        self,
        pool: PagePool,
        *,
        max_num_seqs: int,
        max_num_batched_tokens: int,
        max_read_rows: int = 64,
        swap: SwapPlaces | None = None,
    ) -> None:
        assert max_num_seqs <= max_num_batched_tokens, "a prompt could wait for ever behind others' answers"
        self.pool = pool
        self.swap = SwapPlaces(0) if swap is None else swap
        self.waiting: list[Sequence] = []
        self.running: list[Sequence] = []
        self._max_num_seqs = max_num_seqs
        self._budget = max_num_batched_tokens
        self._max_read_rows = max_read_rows

    @property
    def idle(self) -> bool:
        """Whether nothing is left to compute."""
        return not (self.waiting or self.running)

    @property
    def num_swapped(self) -> int:
        """Waiting sequences whose pages are in swap."""
        return sum(bool(sequence.swap) for sequence in self.waiting)

    def add(self, sequence: Sequence) -> None:
        """Queue a sequence that the pool can hold whole."""
        assert sequence.pages_for(sequence.max_len) <= self.pool.n_pages
        insort(self.waiting, sequence, key=_rank)

    def remove(self, sequence: Sequence) -> None:
        """Take a sequence out, wherever it is, and free its pages; one that is gone already is left alone."""
        if sequence.gone:
            return
        (self.running if sequence in self.running else self.waiting).remove(sequence)
        sequence.done = sequence.gone = True
        sequence.ended_at = sequence.place
        self._free_swap(sequence)
        self._free_pages(sequence)

    def schedule(self, prompt_tokens: int | None = None) -> StepPlan:
        """The next step; it has shares whenever something is left to compute, save while pages are held by others.

        Beside answers under way at most `prompt_tokens` tokens of prompts are computed.
        """
        plan = StepPlan()
        # The second time is for one that was alone and gave way to itself: it needed a copy of its last page.
        for _ in range(2):
            self._admit(plan)
            self._share_out(plan, prompt_tokens)
            if plan.shares or self.idle:
                break
        assert plan.shares or self.idle or self.pool.held, "sequences are left but none can go on"
        return plan

    def commit(self, plan: StepPlan) -> None:
        """Record that `plan` was computed, after its sequences chose their tokens; free what has ended."""
        for sequence, _ in plan.swaps_in.values():
            self._free_swap(sequence)
        for sequence, num_tokens, num_rows in plan.shares:
            if sequence.gone:
                continue
            drafted = num_rows - 1 if num_rows and sequence.sampler is not None else 0
            sequence.advance(num_tokens - drafted + sequence.drafts)
            sequence.drafts = 0
            self.pool.release(sequence.trim_pages())
            if self.pool.keep:
                self._remember(sequence)
            if sequence.done:
                self.remove(sequence)

    def check_integrity(self) -> None:
        """Raise `AssertionError` unless pool, swap, queues and sequences agree."""
        self.pool.check_integrity()
        for sequence in (*self.running, *self.waiting):
            sequence.check()
        assert not any(sequence.pages for sequence in self.waiting)
        used = {page for sequence in self.running for page in sequence.pages}
        assert self.pool.num_used == len(used.union(self.pool.held))
        self.swap.check_integrity(place for sequence in self.waiting for place in sequence.swap)
        assert self.running == sorted(self.running, key=_rank)
        assert self.waiting == sorted(self.waiting, key=_rank)

    def _admit(self, plan: StepPlan) -> None:
        at = 0
        while at < len(self.waiting):
            sequence = self.waiting[at]
            if self._will_share(sequence, plan):
                at += 1
                continue
            if len(self.running) == self._max_num_seqs and not self._give_way(sequence, plan):
                return
            if not self._start(sequence, plan):
                return
            self.waiting.remove(sequence)
            sequence.put_back = False
            insort(self.running, sequence, key=_rank)

    def _will_share(self, sequence: Sequence, plan: StepPlan) -> bool:
        """Whether what a branch shares is on its way: being computed, or read back in this step."""
        origin = sequence.origin
        if origin is None or origin.gone:
            return False
        return origin.num_computed < sequence.num_tokens - 1 or origin.arrival in plan.swaps_in

    def _give_way(self, sequence: Sequence, plan: StepPlan) -> bool:
        """Put back the last of the running ones if `sequence` is more urgent."""
        last = self.running[-1]
        if last.priority <= sequence.priority or last.rank <= sequence.rank:
            return False
        self._put_back(last, plan)
        return True

    def _start(self, sequence: Sequence, plan: StepPlan) -> bool:
        """Give a sequence the pages of what is computed of it already; False where the rest would not fit."""
        promised = sum(s.pages_for(s.num_tokens) - len(s.pages) for s in self.running)
        if self.running and self.pool.available <= promised:
            return False
        num_computed, pages, place = self._known(sequence)
        self.pool.share(pages)
        alone = not (self.running or self.pool.held)
        if not alone and self.pool.available < promised + sequence.pages_for(sequence.num_tokens) - len(pages):
            self.pool.release(pages)
            return False
        if sequence.num_swapped > num_computed:
            # Only whole pages were matched, so those to be read back begin with a page of their own.
            plan.swaps_in[sequence.arrival] = sequence, len(pages)
            num_computed = sequence.num_swapped
            missing = sequence.pages_for(num_computed) - len(pages)
            pages = [*pages, *(self.pool.take() for _ in range(missing))]
        else:
            self._free_swap(sequence)
        if not sequence.put_back:
            sequence.num_cached = num_computed
        sequence.num_computed, sequence.pages, sequence.place, sequence.origin = num_computed, pages, place, None
        return True

    def _known(self, sequence: Sequence) -> tuple[int, list[int], Place]:
        """Tokens of `sequence` that need no computing, their pages and their place in the prefix tree.

        Never all of them: logits of the last one are wanted, and a reader wants those of each.
        """
        tree, origin = self.pool.tree, sequence.origin
        if sequence.reader is not None:
            return 0, [], tree.root(sequence.seed)
        if origin is not None and origin.pages and sequence.num_swapped == 0:
            count = min(origin.num_computed, sequence.num_tokens - 1)
            place = tree.root(sequence.seed) if origin.place is None else origin.place
            depth = min(place.depth, count // sequence.page_len)
            return count, origin.pages[: sequence.pages_for(count)], Place(place.run, depth)
        pages, place = tree.match(sequence.labels((sequence.num_tokens - 1) // sequence.page_len), sequence.seed)
        return len(pages) * sequence.page_len, pages, place

    def _share_out(self, plan: StepPlan, prompt_tokens: int | None) -> None:
        answering = [s for s in self.running if s.num_new == 1 and s.reader is None]
        reading = [s for s in self.running if s.num_new > 1 or s.reader is not None]
        left = self._budget - len(answering)
        for sequence in answering:
            if not sequence.put_back:
                left -= self._share_answer(sequence, left, plan)
        if plan.shares and prompt_tokens is not None:
            left = min(left, prompt_tokens)
        rows = self._max_read_rows
        for sequence in reading:
            num_tokens = min(sequence.num_new, left, left if sequence.reader is None else rows)
            if sequence.put_back or num_tokens == 0 or not self._make_room(sequence, num_tokens, plan):
                continue
            num_rows = int(num_tokens == sequence.num_new) if sequence.reader is None else num_tokens
            plan.shares.append(Share(sequence, num_tokens, num_rows))
            left -= num_tokens
            rows -= num_rows
        plan.shares = [share for share in plan.shares if not share.sequence.put_back]

    def _share_answer(self, sequence: Sequence, left: int, plan: StepPlan) -> int:
        """Plan the next token of an answer and the drafts behind it, of which there are at most `left`."""
        drafts = min(sequence.drafts, left)
        if drafts and self._missing(sequence, 1 + drafts) > self.pool.available:
            drafts = 0
        sequence.drafts = drafts
        if self._make_room(sequence, 1 + drafts, plan):
            plan.shares.append(Share(sequence, 1 + drafts, 1 + drafts))
        return drafts

    def _missing(self, sequence: Sequence, num_tokens: int) -> int:
        """Pages that `sequence` must be given before `num_tokens` more tokens are computed."""
        missing = sequence.pages_for(sequence.num_computed + num_tokens) - len(sequence.pages)
        return missing + int(self._writes_to_shared(sequence))

    def _writes_to_shared(self, sequence: Sequence) -> bool:
        page, offset = divmod(sequence.num_computed, sequence.page_len)
        return offset > 0 and self.pool.shared(sequence.pages[page])

    def _make_room(self, sequence: Sequence, num_tokens: int, plan: StepPlan) -> bool:
        """Take pages for `num_tokens` more tokens, from the last in rank if need be; False where that is itself."""
        missing = self._missing(sequence, num_tokens)
        while missing > self.pool.available and not sequence.put_back:
            self._put_back(self.running[-1], plan)
            if not sequence.put_back:
                missing = self._missing(sequence, num_tokens)
        if sequence.put_back:
            return False
        if missing and self._writes_to_shared(sequence):
            self._copy_last(sequence, plan)
            missing -= 1
        sequence.pages.extend(self.pool.take() for _ in range(missing))
        return True

    def _copy_last(self, sequence: Sequence, plan: StepPlan) -> None:
        """A page of its own for the tokens to come, with a copy of those before them."""
        at = sequence.num_computed // sequence.page_len
        shared, own = sequence.pages[at], self.pool.take()
        plan.copies.append((shared, own))
        sequence.pages = [*sequence.pages[:at], own, *sequence.pages[at + 1 :]]
        self.pool.release([shared])

    def _put_back(self, sequence: Sequence, plan: StepPlan) -> None:
        sequence.put_back = True
        self.running.remove(sequence)
        plan.put_back.append(sequence)
        if plan.swaps_in.pop(sequence.arrival, None) is None:
            self._swap_out(sequence, plan)
        self._free_pages(sequence)
        insort(self.waiting, sequence, key=_rank)

    def _swap_out(self, sequence: Sequence, plan: StepPlan) -> None:
        num_pages = sequence.pages_for(sequence.num_computed)
        short = sequence.num_computed < SWAP_FROM or sequence.reader is not None
        # One that gives way to itself comes back in the same plan.
        if short or num_pages > self.swap.available or not self.running:
            return
        sources = {own: shared for shared, own in plan.copies}
        sequence.swap = [self.swap.take() for _ in range(num_pages)]
        sequence.num_swapped = sequence.num_computed
        plan.swaps_out.append((sequence, [sources.get(page, page) for page in sequence.pages[:num_pages]]))

    def forget_swap(self, sequence: Sequence) -> None:
        """Compute again what could not be written to swap."""
        self._free_swap(sequence)

    def _free_swap(self, sequence: Sequence) -> None:
        self.swap.release(sequence.swap)
        sequence.swap, sequence.num_swapped = [], 0

    def _free_pages(self, sequence: Sequence) -> None:
        if sequence.place is not None:
            self.pool.tree.touch(sequence.place)
        self.pool.release(sequence.drop_pages())

    def _remember(self, sequence: Sequence) -> None:
        """Let the pages that are full now be found."""
        full = sequence.num_computed // sequence.page_len
        place = sequence.place or self.pool.tree.root(sequence.seed)
        while place.depth < full:
            at = place.depth
            place, page = self.pool.remember(place, sequence.label(at), sequence.pages[at])
            if page != sequence.pages[at]:
                sequence.pages = [*sequence.pages[:at], page, *sequence.pages[at + 1 :]]
        sequence.place = place
