"""`Stream`: the events of one answer as they come."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Self

from ..text import Detokenizer, StopStrings
from .completion import Completion, StreamEvent
from .engine import Engine
from .request import Request
from .sequence import FinishReason
from .timings import Timings


class Stream(Iterator[StreamEvent]):
    """An iterator of `StreamEvent`s. Closing it, leaving its `with`, an exception in a wait, or nobody holding it any
    more cancels the request; the engine frees its pages before the next step. One thread at a time may use it.

    Text is made here, in the caller's thread, while the engine computes the next token already.
    """

    def __init__(self, engine: Engine, request: Request, pieces: Detokenizer, stops: StopStrings) -> None:
        self._engine = engine  # an engine lives as long as somebody waits for an answer
        self._request = request
        self._pieces = pieces
        self._stops = stops
        self._cancel = engine.canceller(self, request)
        self._ended = False
        self._count = 0
        self._first_at: float | None = None
        self._last_at = 0.0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> StreamEvent:
        if self._ended:
            raise StopIteration
        try:
            return self._next_event()
        except BaseException:
            self.close()
            raise

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
        events = list(self)
        last = events[-1]
        sequence = self._request.sequence
        assert last.finish_reason is not None
        assert last.timings is not None
        assert sequence.sampler is not None
        return Completion(
            text="".join(event.text for event in events),
            ids=tuple(token for event in events for token in event.ids),
            finish_reason=last.finish_reason,
            timings=last.timings,
            prompt_ids=tuple(sequence.ids[: sequence.num_prompt].tolist()),
            seed=sequence.sampler.seed,
        )

    def _next_event(self) -> StreamEvent:
        ids: list[int] = []
        while True:
            token, ended, at, _ = self._request.receive()
            self._note(token, at)
            text, stopped = "", False
            if token is not None:
                ids.append(token)
                text, stopped = self._stops.push(self._pieces.push(token))
            if stopped:
                return self._last_event(text, ids, "stop")
            if ended:
                return self._flush(text, ids)
            if text:
                return StreamEvent(text, tuple(ids))

    def _flush(self, text: str, ids: list[int]) -> StreamEvent:
        reason = self._request.finish_reason
        assert reason is not None
        rest, stopped = self._stops.push(self._pieces.finish())
        if stopped:
            return self._last_event(text + rest, ids, "stop")
        return self._last_event(text + rest + self._stops.finish(), ids, reason)

    def _last_event(self, text: str, ids: list[int], reason: FinishReason) -> StreamEvent:
        self.close()
        return StreamEvent(text, tuple(ids), reason, self._timings())

    def _note(self, token: int | None, at: float) -> None:
        if self._first_at is None:
            self._first_at = self._last_at = at
        if token is not None:
            self._count += 1
            self._last_at = at

    def _timings(self) -> Timings:
        request = self._request
        assert self._first_at is not None
        assert request.started_at is not None
        return Timings(
            prompt_tokens=request.sequence.num_prompt,
            cached_tokens=request.sequence.num_cached,
            completion_tokens=self._count,
            first_token_s=self._first_at - request.submitted_at,
            prefill_s=self._first_at - request.started_at,
            decode_s=self._last_at - self._first_at,
        )
