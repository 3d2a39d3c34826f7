"""`CacheReport`: how much of a prompt is cached, and why not more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .pages import PagePool
from .prefix_tree import Place, page_key

Reason = Literal["whole", "off", "new", "differs", "evicted"]
"""`whole`: every whole page is there; `new`: no cached text goes on here; `differs`: one does, with other tokens;
`evicted`: it was there and made room for others; `off`: nothing is ever cached."""


@dataclass(frozen=True)
class CacheReport:
    """What a request with this prompt would find now: `cached_tokens` of its `prompt_tokens` need no computing.

    `reason` is why not more, `message` says it to people.
    """

    prompt_tokens: int
    cached_tokens: int
    reason: Reason
    message: str


def explain(
    pool: PagePool, ids: NDArray[np.int32], page_len: int, spell: Callable[[int], str], seed: bytes = b""
) -> CacheReport:
    """Look a prompt `ids` [n] up, which changes nothing."""
    labels = [ids[at : at + page_len].tobytes() for at in range(0, (len(ids) - 1) // page_len * page_len, page_len)]
    pages, place = pool.tree.match(labels, seed)
    cached = len(pages) * page_len

    def report(reason: Reason, message: str) -> CacheReport:
        return CacheReport(len(ids), cached, reason, f"{cached} of {len(ids)} tokens are cached: {message}")

    if not pool.keep:
        return report("off", "the model was loaded with prefix_cache=False")
    if len(pages) == len(labels):
        return report("whole", f"only whole pages of {page_len} tokens are kept, and the last token is always computed")
    wanted = labels[len(pages)]
    if page_key(place.run.key_at(place.depth), wanted) in pool.tree.forgotten:
        return report("evicted", "what comes next was, and made room for others; a larger kv_memory keeps more")
    others = _continuations(place)
    if not others:
        return report("new", "no cached text goes on behind them")
    at, theirs = _first_difference(ids[cached : cached + page_len], others)
    return report(
        "differs",
        f"at token {cached + at} the prompt has {spell(int(ids[cached + at]))!r} where a cached text has "
        f"{spell(theirs)!r}; only whole pages of {page_len} tokens before that are of use",
    )


def _continuations(place: Place) -> list[bytes]:
    """Labels of the pages that cached texts have behind `place`."""
    run, depth = place
    return [run.labels[depth - run.start]] if depth < run.end else list(run.children)


def _first_difference(ids: NDArray[np.int32], others: list[bytes]) -> tuple[int, int]:
    """Where the page most like `ids` differs from it, and its token there."""
    pages = [np.frombuffer(label, np.int32) for label in others]
    firsts = [int((page != ids).argmax()) for page in pages]
    best = max(range(len(pages)), key=firsts.__getitem__)
    return firsts[best], int(pages[best][firsts[best]])
