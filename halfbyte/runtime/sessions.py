"""Saving what is cached to a file, and bringing it back."""

from __future__ import annotations

from os import PathLike

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError, ResourceError
from .adapters import AdapterUse
from .cache.pages import PagePool
from .cache.prefix_tree import Place, Run
from .cache.session_file import Session, load, save
from .cache.session_header import SavedRun
from .engine import Engine, TokenIds
from .loop import EngineLoop


class Sessions:
    """Goes between an engine's prefix tree and session files, with what was computed with the same adapters.

    The engine computes on between two pages.
    """

    def __init__(self, engine: Engine, adapters: AdapterUse) -> None:
        self._engine = engine
        self._origin = engine.origin.of(adapters)
        self._seed = adapters.seed

    def save(self, path: str | PathLike[str], ids: TokenIds | None) -> int:
        """Write what is cached of a text, or of all; the number of tokens. Raises as `session_file.save`."""
        engine, origin, seed = self._engine, self._origin, self._seed
        if ids is not None:
            engine.check_ids(ids)
        pages: list[int] = []
        try:
            runs = engine.call(lambda loop: _hold(loop, ids, seed, pages))
            save(
                path,
                origin.fingerprint,
                runs,
                lambda index, out: engine.call(lambda loop: loop.executable.read_page(pages[index], out)),
                page_bytes=engine.page_bytes,
                about=origin.about,
            )
        finally:
            if not engine.closed:
                engine.call(lambda loop: loop.scheduler.pool.let_go(pages))
        return len(pages) * engine.page_len

    def load(self, path: str | PathLike[str]) -> int:
        """Bring back what a file holds; the number of tokens. A file that cannot be used changes nothing.

        Raises as `session_file.load`, and `ResourceError` where the pages are not enough.
        """
        engine, origin, seed = self._engine, self._origin, self._seed
        with load(path, origin.fingerprint, page_bytes=engine.page_bytes, about=origin.about) as session:
            _check_runs(session, engine.page_len, path)
            pages: list[int] = []
            try:
                engine.call(lambda loop: _take(loop, session.num_pages, pages))
                for index, page in enumerate(pages):
                    data = np.empty(engine.page_bytes, np.uint8)
                    session.read_page(index, data)
                    engine.call(lambda loop, page=page, data=data: loop.executable.write_page(page, data))  # type: ignore[misc]
                engine.call(lambda loop: _insert(loop, session.runs, seed, pages))
            except BaseException:
                if not engine.closed:
                    engine.call(lambda loop: loop.scheduler.pool.let_go(pages))
                raise
            return session.num_pages * engine.page_len


# Pages go into the caller's list: who is interrupted in the wait for a call, which takes place all the same, knows
# what to let go of in a later one.


def _hold(loop: EngineLoop, ids: TokenIds | None, seed: bytes, held: list[int]) -> list[SavedRun]:
    """The runs to save; their pages are `held` until let go of."""
    pool = loop.scheduler.pool
    if ids is None:
        runs, pages = _all_runs(pool, seed)
    else:
        runs, pages = _one_run(pool, np.asarray(ids, np.int32), seed, loop.executable.page_len)
    pool.hold(pages)
    held += pages
    return runs


def _all_runs(pool: PagePool, seed: bytes) -> tuple[list[SavedRun], list[int]]:
    number: dict[Run | None, int] = {}
    runs, pages = list[SavedRun](), list[int]()
    for run in pool.tree.runs(seed):
        number[run] = len(runs)
        tokens = np.frombuffer(b"".join(run.labels), np.int32)
        runs.append(SavedRun(number.get(run.parent, -1), tokens, len(run.pages)))
        pages += run.pages
    return runs, pages


def _one_run(pool: PagePool, ids: NDArray[np.int32], seed: bytes, page_len: int) -> tuple[list[SavedRun], list[int]]:
    whole = len(ids) // page_len * page_len
    pages, _ = pool.tree.match((ids[at : at + page_len].tobytes() for at in range(0, whole, page_len)), seed)
    return [SavedRun(-1, ids[: len(pages) * page_len], len(pages))] if pages else [], pages


def _check_runs(session: Session, page_len: int, path: str | PathLike[str]) -> None:
    for number, run in enumerate(session.runs):
        if len(run.tokens) != run.num_pages * page_len or not -1 <= run.parent < number:
            raise FormatError(f"run {number} of the session has tokens that do not fill its pages", path=path)


def _take(loop: EngineLoop, count: int, held: list[int]) -> None:
    """`count` pages, `held` until let go of."""
    pool = loop.scheduler.pool
    if count > pool.available:
        size = loop.executable.page_bytes
        raise ResourceError(
            f"the session has {count} pages and {pool.available} can be had: end what is under way or load the model "
            "with a larger kv_memory",
            needed=count * size,
            free=pool.available * size,
        )
    pages = [pool.take() for _ in range(count)]
    pool.held.extend(pages)
    held += pages
    loop.save_evicted()


def _insert(loop: EngineLoop, runs: tuple[SavedRun, ...], seed: bytes, pages: list[int]) -> None:
    """Let filled `pages` be found, and let go of them."""
    pool, page_len = loop.scheduler.pool, loop.executable.page_len
    places: list[Place] = []
    index = 0
    kept: list[int] = []
    for run in runs:
        place = pool.tree.root(seed) if run.parent < 0 else places[run.parent]
        for at in range(0, len(run.tokens), page_len):
            label = np.ascontiguousarray(run.tokens[at : at + page_len], np.int32).tobytes()
            place, page = pool.remember(place, label, pages[index])
            kept.append(page)
            index += 1
        pool.tree.touch(place)
        places.append(place)
    for page in pages:
        pool.held.remove(page)
    pages.clear()
    pool.release(kept)
