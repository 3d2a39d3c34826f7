"""`PrefixTree`: which page holds which tokens, found from the beginning of a text.

A radix tree: a node is a `Run` of pages that always followed each other, and has a child for each way in which texts
went on behind it. Everything counts in whole pages; a page's label is its tokens as int32 bytes. A page is of use only
together with those before it, so pages leave from the ends of leaves, the run unused for longest first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

Key = bytes
"""Names a full page by its tokens and all before them; equal keys mean KV that is equal to the last bit."""

REMEMBERED = 4096
"""Keys of evicted pages that are kept, so that a miss can say it was a hit once."""


def page_key(parent: Key, label: bytes) -> Key:
    """Key of the page that follows `parent` and holds the tokens `label`."""
    return blake2b(parent + label, digest_size=16).digest()


@dataclass(eq=False)
class Run:
    """Pages `start` .. `end - 1` of all texts that pass through it; `used` tells when one did last."""

    parent: Run | None
    start: int
    root_key: Key
    labels: list[bytes] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)
    pages: list[int] = field(default_factory=list)
    children: dict[bytes, Run] = field(default_factory=dict)
    used: int = 0
    offered: bool = False

    @property
    def end(self) -> int:
        """Pages up to and with this run."""
        return self.start + len(self.pages)

    def key_at(self, depth: int) -> Key:
        """Key of the text of `depth` pages, `start` or further."""
        if depth > self.start:
            return self.keys[depth - self.start - 1]
        return self.root_key if self.parent is None else self.parent.keys[-1]


class Place(NamedTuple):
    """The text of `depth` pages; `run` held its last page when the place was made, and may have been split since."""

    run: Run
    depth: int


class PrefixTree:
    """Texts by their pages; texts of different seeds (adapters, say) share nothing. Used by one thread."""

    def __init__(self, fingerprint: bytes = b"") -> None:
        self.run_of: dict[int, Run] = {}
        self.forgotten: OrderedDict[Key, None] = OrderedDict()
        self._fingerprint = fingerprint
        self._roots: dict[bytes, Run] = {}
        self._clock = count(1)
        self._leaves: list[tuple[int, int, Run]] = []
        self._pushed = count()

    def root(self, seed: bytes = b"") -> Place:
        """The empty text."""
        if seed not in self._roots:
            self._roots[seed] = Run(None, 0, page_key(self._fingerprint, seed))
        return Place(self._roots[seed], 0)

    def match(self, labels: Iterable[bytes], seed: bytes = b"") -> tuple[list[int], Place]:
        """The pages of the longest known beginning of a text, and its place."""
        run, pages = self.root(seed).run, list[int]()
        for label in labels:
            at = len(pages) - run.start
            if at == len(run.pages):
                child = run.children.get(label)
                if child is None:
                    break
                run, at = child, 0
            elif run.labels[at] != label:
                break
            pages.append(run.pages[at])
        return pages, Place(run, len(pages))

    def extend(self, place: Place, label: bytes, page: int) -> tuple[Place, int]:
        """Let the text at `place` go on with `page`; returns the new place and the page that holds it.

        That is another page where the tree knows the text already; `page` is then not taken in.
        """
        run, depth = self.settle(place)
        if depth < run.end:
            if run.labels[depth - run.start] == label:
                return Place(run, depth + 1), run.pages[depth - run.start]
            run = self._split(run, depth)
        child = run.children.get(label)
        if child is not None:
            return Place(child, depth + 1), child.pages[0]
        key = page_key(run.key_at(depth), label)
        if run.children or run.parent is None:
            child = run.children[label] = Run(run, depth, run.root_key, used=next(self._clock))
            run = child
        run.labels.append(label)
        run.keys.append(key)
        run.pages.append(page)
        self.run_of[page] = run
        self.forgotten.pop(key, None)
        return Place(run, depth + 1), page

    def settle(self, place: Place) -> Place:
        """The same place with the run that holds its last page now: a split leaves the front to a new parent."""
        run, depth = place
        while depth <= run.start and run.parent is not None:
            run = run.parent
        assert depth <= run.end, "a page left the tree while somebody stood on it"
        return Place(run, depth)

    def touch(self, place: Place) -> None:
        """Note that the text was used just now."""
        now = next(self._clock)
        run: Run | None = self.settle(place).run
        while run is not None:
            run.used = now
            run = run.parent

    def offer(self, run: Run) -> None:
        """Put up for eviction a run whose last page may have become idle."""
        if not (run.offered or run.children) and run.pages:
            run.offered = True
            heappush(self._leaves, (run.used, next(self._pushed), run))

    def evict(self, idle: Callable[[int], bool]) -> tuple[int, Key]:
        """Take out the last page of the leaf unused for longest that is `idle`, of which there must be one."""
        while True:
            used, _, run = heappop(self._leaves)
            run.offered = False
            if run.children or not run.pages or not idle(run.pages[-1]):
                continue  # it is offered again when that changes
            if used != run.used:
                self.offer(run)
                continue
            return self._drop_last(run)

    def _drop_last(self, run: Run) -> tuple[int, Key]:
        page, key, label = run.pages.pop(), run.keys.pop(), run.labels.pop()
        del self.run_of[page]
        self.forgotten[key] = None
        if len(self.forgotten) > REMEMBERED:
            self.forgotten.popitem(last=False)
        if run.pages:
            self.offer(run)
        elif run.parent is not None:
            del run.parent.children[label]
            self.offer(run.parent)
        return page, key

    def _split(self, run: Run, depth: int) -> Run:
        """Give the pages of `run` before `depth` to a new parent, which is returned."""
        at = depth - run.start
        assert run.parent is not None
        assert 0 < at < len(run.pages)
        front = Run(run.parent, run.start, run.root_key, run.labels[:at], run.keys[:at], run.pages[:at], used=run.used)
        run.parent.children[front.labels[0]] = front
        run.labels, run.keys, run.pages = run.labels[at:], run.keys[at:], run.pages[at:]
        run.parent, run.start = front, depth
        front.children[run.labels[0]] = run
        for page in front.pages:
            self.run_of[page] = front
        return front

    def runs(self, seed: bytes = b"") -> Iterator[Run]:
        """Every run of a seed's texts, parents before children; the empty root is left out."""
        left = list(self.root(seed).run.children.values())
        while left:
            run = left.pop()
            yield run
            left.extend(run.children.values())

    def check_integrity(self) -> None:
        """Raise `AssertionError` unless runs, labels and pages agree."""
        seen: dict[int, Run] = {}
        for seed, root in self._roots.items():
            assert not root.pages, "a root has pages"
            for run in self.runs(seed):
                assert run.pages, "an empty run was left behind"
                assert len(run.pages) == len(run.labels) == len(run.keys)
                assert run.parent is not None
                assert run.parent.end == run.start, "a run does not follow its parent"
                assert run.parent.children[run.labels[0]] is run
                seen |= dict.fromkeys(run.pages, run)
        assert seen == self.run_of, "pages and runs disagree"
