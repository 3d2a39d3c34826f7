"""The Chrome trace-event format: what chrome://tracing and ui.perfetto.dev show.

Source: "Trace Event Format", https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from ...model.backend import Span
from .recording import Phase, StepCounts

Event = dict[str, Any]
_PROCESS, _ENGINE = 1, 0


def events(phases: list[Phase], ops: list[Span], counts: Mapping[int, StepCounts]) -> Iterator[Event]:
    """Events of the engine's thread and of each thread that computes, in microseconds since the earliest."""
    origin = min([phase.start_s for phase in phases[:1]] + [op.start_s for op in ops[:1]], default=0.0)
    yield from _named(sorted({op.thread for op in ops}))
    for phase in phases:
        args = {"step": phase.step}
        if phase.name == "run" and phase.step in counts:
            args |= asdict(counts[phase.step])
        yield _event(phase, origin, _ENGINE) | {"args": args}
    for op in ops:
        yield _event(op, origin, 1 + op.thread)


def text(events: Iterator[Event], about: Mapping[str, object]) -> Iterator[str]:
    """A file of `events` in pieces; `about` is metadata of its reader's choice."""
    yield f'{{"displayTimeUnit": "ms", "otherData": {json.dumps(dict(about))}, "traceEvents": ['
    for number, event in enumerate(events):
        yield f"{',' if number else ''}\n{json.dumps(event)}"
    yield "\n]}\n"


def _named(threads: list[int]) -> Iterator[Event]:
    names = {_ENGINE: "engine"} | {1 + thread: f"compute {thread}" for thread in threads}
    for thread, name in names.items():
        yield {"ph": "M", "name": "thread_name", "pid": _PROCESS, "tid": thread, "args": {"name": name}}


def _event(span: Phase | Span, origin: float, thread: int) -> Event:
    return {
        "ph": "X",
        "name": span.name,
        "pid": _PROCESS,
        "tid": thread,
        "ts": round(1e6 * (span.start_s - origin), 3),
        "dur": round(1e6 * (span.end_s - span.start_s), 3),
    }
