"""`in_order`: work done ahead by several threads, results in the order of the work."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 3
"""Items begun for each thread, so that none waits for the disk."""


def in_order(
    items: Iterable[Item], work: Callable[[Item], Result], threads: int, name: str
) -> Iterator[tuple[Item, Result]]:
    """Items with what `work` makes of them; only a few are held at a time."""
    under_way: deque[tuple[Item, Future[Result]]] = deque()
    pool = ThreadPoolExecutor(threads, name)
    try:
        for item in items:
            under_way.append((item, pool.submit(work, item)))
            if len(under_way) > AHEAD * threads:
                first, future = under_way.popleft()
                yield first, future.result()
        for last, future in under_way:
            yield last, future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
