"""`Meter`: counts what the engine does, as it does it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from time import perf_counter
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from ...errors import CancelledError, DeadlineExceededError
from ..request import Request
from ..sequence import Sequence
from ..step import StepPlan
from .metrics import ENDS, PHASES
from .recording import Recording
from .windows import LastValues, Rate

P = ParamSpec("P")
R = TypeVar("R")


class Meter:
    """Only the engine's thread writes; whoever reads gets numbers that may be a step apart from each other."""

    def __init__(self) -> None:
        self.first_token, self.inter_token = LastValues(), LastValues()
        self.prompt_rate, self.generated_rate = Rate(), Rate()
        self.ended = dict.fromkeys(ENDS, 0)
        self.preempted = {"recompute": 0, "swap": 0}
        self.phase_s = dict.fromkeys(PHASES, 0.0)
        self.prompt_tokens = self.cached_tokens = self.generated_tokens = 0
        self.drafted = self.accepted = 0
        self.steps = 0
        self.recording: Recording | None = None
        self._lap = 0.0

    def begin(self) -> None:
        """A step begins."""
        self.steps += 1
        if self.recording is not None:
            self.recording.begin(self.steps)
        self._lap = perf_counter()

    def lap(self, name: str) -> None:
        """A phase of the step ends."""
        start, self._lap = self._lap, perf_counter()
        self.phase_s[name] += self._lap - start
        if self.recording is not None:
            self.recording.phase(name, start, self._lap)

    def planned(self, plan: StepPlan) -> None:
        """A step is about to be computed."""
        if plan.put_back:
            self.preempted["swap"] += len(plan.swaps_out)
            self.preempted["recompute"] += len(plan.put_back) - len(plan.swaps_out)
        if self.recording is not None:
            self.recording.planned(plan)

    def started(self, sequence: Sequence) -> None:
        """A request's first token is about to be computed."""
        self.prompt_tokens += sequence.num_prompt
        self.cached_tokens += sequence.num_cached

    def computed(self, prompt_tokens: int) -> None:
        """A step was computed that had so many tokens of prompts."""
        if prompt_tokens:
            self.prompt_rate.add(prompt_tokens, perf_counter())

    def speculated(self, drafted: int, accepted: int) -> None:
        """Of the tokens guessed for a sequence some were right."""
        self.drafted += drafted
        self.accepted += accepted

    def emitted(self, request: Request, count: int, now: float) -> None:
        """A request got so many tokens."""
        if count == 0:
            return
        if request.emitted_at is None:
            self.first_token.add(now - request.submitted_at)
        else:
            self.inter_token.add((now - request.emitted_at) / count)
        request.emitted_at = now
        self.generated_tokens += count
        self.generated_rate.add(count, now)

    def end(self, request: Request, error: Exception | None = None) -> None:
        """A request ended, by itself or by an error."""
        if isinstance(error, CancelledError):
            reason = "stop" if request.satisfied else "cancelled"
        elif isinstance(error, DeadlineExceededError):
            reason = "deadline"
        else:
            reason = "failed" if error is not None else request.finish_reason or "read"
        self.ended[reason] += 1


class Metered(Protocol):
    """Who has a meter."""

    meter: Meter


M = TypeVar("M", bound=Metered)


def phase(
    name: str, after: str | None = None
) -> Callable[[Callable[Concatenate[M, P], R]], Callable[Concatenate[M, P], R]]:
    """A method that is the phase `name` of a step; what came before it in the step was the phase `after`."""

    def decorate(method: Callable[Concatenate[M, P], R]) -> Callable[Concatenate[M, P], R]:
        @wraps(method)
        def timed(self: M, /, *args: P.args, **kwargs: P.kwargs) -> R:
            if after is not None:
                self.meter.lap(after)
            result = method(self, *args, **kwargs)
            self.meter.lap(name)
            return result

        return timed

    return decorate
