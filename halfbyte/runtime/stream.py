"""`Stream`: the events of one answer as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from .assembly import Assembly
from .completion import Completion, StreamEvent
from .engine import Engine

if TYPE_CHECKING:
    from .options import Options

Branch = Callable[[Assembly, "Options"], Assembly]
"""Starts another answer where an assembly is now."""


class Stream(Iterator[StreamEvent]):
    """An iterator of `StreamEvent`s. Closing it, leaving its `with`, an exception in a wait, or nobody holding it any
    more cancels the request; the engine frees its pages before the next step. One thread at a time may use it.

    Text is made here, in the caller's thread, while the engine computes the next token already.
    """

    def __init__(self, engine: Engine, assembly: Assembly, branch: Branch) -> None:
        self._engine = engine  # an engine lives as long as somebody waits for an answer
        self._assembly = assembly
        self._branch = branch
        self._cancel = engine.canceller(self, assembly.request)
        self._ended = False

    @property
    def prompt_ids(self) -> tuple[int, ...]:
        """The tokens that the answer follows."""
        return self._assembly.prompt_ids

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> StreamEvent:
        if self._ended:
            raise StopIteration
        self._engine.check_caller()
        try:
            event = None
            while event is None:
                event = self._assembly.push(self._assembly.request.receive())
        except BaseException:
            self.close()
            raise
        if self._assembly.ended:
            self.close()
        return event

    def fork(self, **options: Unpack[Options]) -> Stream:
        """Another answer that goes on from what was taken of this one; both share the pages of their common beginning.

        `options` go over those of this stream, save that the seed is drawn anew. Its events begin behind those that
        were taken here. Raises as `LLM.stream`.
        """
        return Stream(self._engine, self._branch(self._assembly, options), self._branch)

    def close(self) -> None:
        """Cancel what is left; may be called twice."""
        self._ended = True
        self._cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def collect(self) -> Completion:
        """Wait for the end; everything that had not been taken yet as one `Completion`."""
        return self._assembly.completion(list(self))
