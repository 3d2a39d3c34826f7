"""`PagePool`: which pages of the KV store are free, cached or used.

    free    in nobody's hands, contents worthless
    cached  in nobody's hands, full of tokens that can be found again by key; taken, oldest first, when none is free
    used    in the hands of `count` sequences

Always free + cached + used == P.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from hashlib import blake2b

Key = bytes
"""Names a full page by its tokens and all before them; equal keys mean KV that is equal to the last bit."""

ROOT: Key = b""


def page_key(parent: Key, tokens: bytes) -> Key:
    """Key of the page that follows `parent` and holds `tokens` (int32 bytes)."""
    return blake2b(parent + tokens, digest_size=16).digest()


class PagePool:
    """Hands out pages by number. With `keep` False nothing is cached. Used by one thread."""

    def __init__(self, n_pages: int, *, keep: bool = True) -> None:
        self.n_pages = n_pages
        self._keep = keep
        self._count = [0] * n_pages
        self._free = list(range(n_pages - 1, -1, -1))
        self._cached: OrderedDict[int, None] = OrderedDict()
        self._key_of: dict[int, Key] = {}
        self._page_of: dict[Key, int] = {}

    @property
    def num_free(self) -> int:
        """Pages whose contents are worthless."""
        return len(self._free)

    @property
    def num_cached(self) -> int:
        """Pages that nobody holds and that can be found again."""
        return len(self._cached)

    @property
    def num_used(self) -> int:
        """Pages that sequences hold."""
        return self.n_pages - self.available

    @property
    def available(self) -> int:
        """Pages that `take` can hand out."""
        return len(self._free) + len(self._cached)

    def take(self) -> int:
        """A page for one holder; forgets the cached page unused for longest where none is free."""
        if self._free:
            page = self._free.pop()
        else:
            assert self._cached, "take() without an available page"
            page, _ = self._cached.popitem(last=False)
            del self._page_of[self._key_of.pop(page)]
        self._count[page] = 1
        return page

    def share(self, pages: Iterable[int]) -> None:
        """One more holder for each of `pages`."""
        for page in pages:
            if self._count[page] == 0:
                del self._cached[page]
            self._count[page] += 1

    def release(self, pages: Sequence[int]) -> None:
        """One holder less for each of a sequence's `pages`.

        The last ones age first: a page is of use only together with those before it.
        """
        for page in reversed(pages):
            assert self._count[page] > 0, f"page {page} released more often than taken"
            self._count[page] -= 1
            if self._count[page] == 0:
                if page in self._key_of:
                    self._cached[page] = None
                else:
                    self._free.append(page)

    def remember(self, page: int, key: Key) -> None:
        """Let a full page be found by `key`; where another page has that key already, that one stays findable."""
        if self._keep and key not in self._page_of:
            self._page_of[key] = page
            self._key_of[page] = key

    def match(self, keys: Iterable[Key]) -> list[int]:
        """The pages of the longest run of `keys`, from the first on, that is known. Takes no hold of them."""
        pages = []
        for key in keys:
            page = self._page_of.get(key)
            if page is None:
                break
            pages.append(page)
        return pages

    def check_integrity(self) -> None:
        """Raise `AssertionError` unless every page is in exactly one state and the key tables agree."""
        free, cached = set(self._free), set(self._cached)
        used = {page for page, count in enumerate(self._count) if count > 0}
        assert len(free) == len(self._free), "a page is free twice"
        assert free | cached | used == set(range(self.n_pages)), "a page is lost"
        assert len(free) + len(cached) + len(used) == self.n_pages, "a page is in two states"
        assert {page: key for key, page in self._page_of.items()} == self._key_of, "key tables disagree"
        assert cached <= self._key_of.keys(), "a cached page cannot be found"
        assert not free & self._key_of.keys(), "a free page can be found"
