"""`Assembly`: from tokens as they come to `StreamEvent`s."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from ..errors import RequestError
from ..text import Detokenizer, StopStrings
from .completion import Completion, StreamEvent
from .constraint.wish import Constraint
from .request import Emission, Request
from .sequence import Chosen, FinishReason
from .timings import Timings


class Assembly:
    """Makes whole characters, watches stop strings and the clock; for one request, in its caller's thread."""

    def __init__(
        self, request: Request, pieces: Detokenizer, stops: StopStrings, constraint: Constraint | None = None
    ) -> None:
        self.request = request
        self.ended = False
        self.num_tokens = 0
        self._pieces = pieces
        self._stops = stops
        self._constraint = constraint
        self._held: list[Chosen] = []
        self._first_at: float | None = None
        self._last_at = 0.0

    @property
    def prompt_ids(self) -> tuple[int, ...]:
        """The tokens of the prompt."""
        sequence = self.request.sequence
        return tuple(sequence.ids[: sequence.num_prompt].tolist())

    def push(self, emission: Emission) -> StreamEvent | None:
        """The event that an emission completes, if any; the last one has a finish reason."""
        self._note(emission)
        text, stopped = "", False
        if emission.chosen is not None:
            self._held.append(emission.chosen)
            text, stopped = self._stops.push(self._pieces.push(emission.chosen.token))
        if stopped:
            return self._event(text, "stop")
        if emission.ended:
            return self._flush(text)
        return self._event(text) if text else None

    def branch(self) -> tuple[Detokenizer, StopStrings]:
        """What goes on from here in another answer: half characters and half stop strings."""
        return deepcopy(self._pieces), deepcopy(self._stops)

    def completion(self, events: list[StreamEvent]) -> Completion:
        """All `events` up to the last one as a whole."""
        last, sequence = events[-1], self.request.sequence
        assert last.finish_reason is not None
        assert last.timings is not None
        assert sequence.sampler is not None
        text = "".join(event.text for event in events)
        return Completion(
            text=text,
            ids=tuple(token for event in events for token in event.ids),
            finish_reason=last.finish_reason,
            timings=last.timings,
            prompt_ids=self.prompt_ids,
            seed=sequence.sampler.seed,
            logprobs=tuple(one for event in events for one in event.logprobs),
            parsed=self._parsed(text) if last.finish_reason == "stop" else None,
        )

    def _parsed(self, text: str) -> Any:
        """None of an answer that a stop string cut, or that the caller's class refuses."""
        if self._constraint is None or self._constraint.parse is None:
            return None
        try:
            return self._constraint.parse(text)
        except (ValueError, RequestError):
            return None

    def _flush(self, text: str) -> StreamEvent:
        reason = self.request.finish_reason
        assert reason is not None
        rest, stopped = self._stops.push(self._pieces.finish())
        if stopped:
            return self._event(text + rest, "stop")
        return self._event(text + rest + self._stops.finish(), reason)

    def _event(self, text: str, reason: FinishReason | None = None) -> StreamEvent:
        held, self._held = self._held, []
        self.ended = reason is not None
        self.request.satisfied |= self.ended
        return StreamEvent(
            text,
            tuple(chosen.token for chosen in held),
            finish_reason=reason,
            timings=self._timings() if self.ended else None,
            logprobs=tuple(chosen.logprobs for chosen in held if chosen.logprobs is not None),
        )

    def _note(self, emission: Emission) -> None:
        if self._first_at is None:
            self._first_at = self._last_at = emission.at
        if emission.chosen is not None:
            self.num_tokens += 1
            self._last_at = emission.at

    def _timings(self) -> Timings:
        request = self.request
        assert self._first_at is not None
        assert request.started_at is not None
        return Timings(
            prompt_tokens=request.sequence.num_prompt,
            cached_tokens=request.sequence.num_cached,
            completion_tokens=self.num_tokens,
            first_token_s=self._first_at - request.submitted_at,
            prefill_s=self._first_at - request.started_at,
            decode_s=self._last_at - self._first_at,
            drafted_tokens=request.sequence.num_drafted,
            accepted_tokens=request.sequence.num_accepted,
        )
