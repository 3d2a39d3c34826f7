"""`PagePool`: which pages of the KV store are free, cached or used.

    free    in nobody's hands, contents worthless
    cached  in nobody's hands, but in the prefix tree; evicted when no page is free
    used    in the hands of one sequence or several

Always free + cached + used == P.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .prefix_tree import Key, Place, PrefixTree


class PagePool:
    """Hands out pages by number. With `keep` False nothing is cached. Used by one thread.

    `held` are pages that no sequence holds but someone who reads or fills them. `evicted` collects the pages whose
    contents were given up, with their keys: whoever wants to save them must do so before the page is written to.
    """

    def __init__(self, n_pages: int, *, keep: bool = True, fingerprint: bytes = b"") -> None:
        self.n_pages = n_pages
        self.keep = keep
        self.tree = PrefixTree(fingerprint)
        self.evicted: list[tuple[int, Key]] = []
        self.held: list[int] = []
        self._count = [0] * n_pages
        self._free = list(range(n_pages - 1, -1, -1))
        self._num_cached = 0

    @property
    def num_free(self) -> int:
        """Pages whose contents are worthless."""
        return len(self._free)

    @property
    def num_cached(self) -> int:
        """Pages that nobody holds and that can be found again."""
        return self._num_cached

    @property
    def num_used(self) -> int:
        """Pages that sequences hold."""
        return self.n_pages - self.available

    @property
    def available(self) -> int:
        """Pages that `take` can hand out."""
        return len(self._free) + self._num_cached

    def take(self) -> int:
        """A page for one holder; evicts a cached one where none is free."""
        if self._free:
            page = self._free.pop()
        else:
            assert self._num_cached, "take() without an available page"
            page, key = self.tree.evict(self._idle)
            self._num_cached -= 1
            self.evicted.append((page, key))
        self._count[page] = 1
        return page

    def share(self, pages: Iterable[int]) -> None:
        """One more holder for each of `pages`."""
        for page in pages:
            if self._count[page] == 0:
                self._num_cached -= 1
            self._count[page] += 1

    def release(self, pages: Sequence[int]) -> None:
        """One holder less for each of `pages`, which are in order of their sequence."""
        for page in reversed(pages):
            assert self._count[page] > 0, f"page {page} released more often than taken"
            self._count[page] -= 1
            if self._count[page] == 0:
                self._became_idle(page)

    def hold(self, pages: Sequence[int]) -> None:
        """Keep `pages` as they are until `let_go`."""
        self.share(pages)
        self.held.extend(pages)

    def let_go(self, pages: Sequence[int]) -> None:
        """Be done with pages that were held."""
        for page in pages:
            self.held.remove(page)
        self.release(pages)

    def _became_idle(self, page: int) -> None:
        run = self.tree.run_of.get(page)
        if run is None:
            self._free.append(page)
            return
        self._num_cached += 1
        if page == run.pages[-1]:
            self.tree.offer(run)

    def _idle(self, page: int) -> bool:
        return self._count[page] == 0

    def shared(self, page: int) -> bool:
        """Whether somebody else may read the page, so that its holder must not write to it."""
        return self._count[page] > 1 or page in self.tree.run_of

    def remember(self, place: Place, label: bytes, page: int) -> tuple[Place, int]:
        """Let a full page of one's own be found; returns its place in the tree and the page to go on with.

        Where another page holds the same text already, its holder goes on with that one and `page` comes free.
        """
        place, kept = self.tree.extend(place, label, page)
        if kept != page:
            self.share([kept])
            self.release([page])
        return place, kept

    def forget_evicted(self) -> list[tuple[int, Key]]:
        """What was evicted since the last call."""
        evicted, self.evicted = self.evicted, []
        return evicted

    def check_integrity(self) -> None:
        """Raise `AssertionError` unless every page is in exactly one state and the tree agrees."""
        self.tree.check_integrity()
        free, kept = set(self._free), set(self.tree.run_of)
        used = {page for page, count in enumerate(self._count) if count > 0}
        cached = {page for page in kept if self._count[page] == 0}
        assert len(free) == len(self._free), "a page is free twice"
        assert not free & kept, "a free page can be found"
        assert free | cached | used == set(range(self.n_pages)), "a page is lost"
        assert len(free) + len(cached) + len(used) == self.n_pages, "a page is in two states"
        assert len(cached) == self._num_cached, "cached pages are miscounted"
        for run in self.tree.run_of.values():
            held = [self._count[page] > 0 for page in run.pages]
            assert held == sorted(held, reverse=True), "a page is held without those before it"
