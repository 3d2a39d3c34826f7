"""`Watched`: weights that tell when another one is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ...model.backend import Progress, Weight


class Watched(Mapping[str, Weight]):
    """Calls `progress(what, done, total)` with bytes, and `done_with`, before a weight is looked up the first time."""

    def __init__(
        self, weights: Mapping[str, Weight], progress: Progress | None, what: str, done_with: Callable[[], None]
    ) -> None:
        self._weights, self._progress, self._what, self._done_with = weights, progress, what, done_with
        self._seen: set[str] = set()
        self._done = 0
        self._total = sum(weight.data.nbytes for weight in weights.values())

    def __getitem__(self, name: str) -> Weight:
        weight = self._weights[name]
        if name not in self._seen:
            self._seen.add(name)
            self._done_with()
            if self._progress is not None:
                self._progress(self._what, self._done, self._total)
            self._done += weight.data.nbytes
        return weight

    def __iter__(self) -> Iterator[str]:
        return iter(self._weights)

    def __len__(self) -> int:
        return len(self._weights)
