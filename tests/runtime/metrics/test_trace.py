"""Traces: from what ran to a file that a browser shows."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from halfbyte.errors import ConfigError
from halfbyte.model.backend import Span
from halfbyte.runtime.metrics.chrome_trace import events, text
from halfbyte.runtime.metrics.metrics import PHASES
from halfbyte.runtime.metrics.recording import Phase, Recording, StepCounts
from halfbyte.runtime.step import StepPlan
from tests.runtime.toy import ToyExecutable
from tests.runtime.toy_llm import toy_llm


class TwoThreads(ToyExecutable):
    """Tells of two ops a step, one for each thread."""

    tracing = False

    def __init__(self):
        super().__init__()
        self.told = []

    def run(self, batch, logits) -> None:
        super().run(batch, logits)
        if self.tracing:
            self.told += [Span("Linear a", self.steps, thread, 5.0, 5.25) for thread in range(2)]

    def spans(self):
        told, self.told = self.told, []
        return told


def test_spans_become_events_in_microseconds_on_their_threads():
    phases = [Phase("schedule", 7, 10.0, 10.5), Phase("run", 7, 10.5, 12.0)]
    counts = {7: StepCounts(tokens=5, sequences=2, logit_rows=2, put_back=0)}
    named, worker, scheduled, ran, op = events(phases, [Span("Rope", 1, 0, 11.0, 11.25)], counts)
    assert [named["args"]["name"], worker["args"]["name"]] == ["engine", "compute 0"]
    assert scheduled == {"ph": "X", "name": "schedule", "pid": 1, "tid": 0, "ts": 0, "dur": 5e5, "args": {"step": 7}}
    assert ran["args"] == {"step": 7, "tokens": 5, "sequences": 2, "logit_rows": 2, "put_back": 0}
    assert op == {"ph": "X", "name": "Rope", "pid": 1, "tid": worker["tid"], "ts": 1e6, "dur": 2.5e5}


def test_nothing_recorded_is_a_valid_file_too():
    assert json.loads("".join(text(events([], [], {}), {"model": 'a"b'})))["otherData"] == {"model": 'a"b'}


def test_a_file_shows_every_step_by_phase_and_every_op_by_thread(tmp_path):
    path = tmp_path / "trace.json"
    with toy_llm(TwoThreads()) as llm:
        llm.generate([1], max_tokens=3)
        with llm.trace(path):
            llm.generate([1, 2, 3], max_tokens=4)
        llm.generate([1], max_tokens=3)
    trace = json.loads(path.read_text())
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    engine = [event for event in spans if event["tid"] == 0]
    assert [event["name"] for event in engine] == [*PHASES] * 4
    assert [event["args"]["step"] for event in engine[::6]] == [event["args"]["step"] for event in engine[5::6]]
    assert [event["args"]["tokens"] for event in engine if event["name"] == "run"] == [3, 1, 1, 1]
    assert all(now["ts"] + now["dur"] <= then["ts"] + 0.01 for now, then in pairwise(engine))
    assert [sum(event["tid"] == tid for event in spans) for tid in (1, 2)] == [4, 4]
    assert trace["otherData"]["stopped_early"] is False
    assert trace["otherData"]["isa"] == "toy"


def test_a_trace_is_written_after_an_exception_and_after_the_model_was_closed(tmp_path):
    llm = toy_llm()
    with pytest.raises(ConfigError, match="max_tokens"), llm.trace(tmp_path / "a.json"):
        llm.generate([1], max_tokens=len(llm.generate([1], max_tokens=2).ids) - 2)
    with llm.trace(tmp_path / "b.json"):
        llm.generate([1], max_tokens=2)
        llm.close()
    counts = [len(json.loads((tmp_path / name).read_text())["traceEvents"]) for name in ("a.json", "b.json")]
    assert counts == [13, 13]


def test_one_trace_at_a_time_and_only_where_a_file_can_be(tmp_path):
    with toy_llm() as llm:
        with (
            llm.trace(tmp_path / "a.json"),
            pytest.raises(ConfigError, match="already"),
            llm.trace(tmp_path / "b.json"),
        ):
            pass
        with pytest.raises(ConfigError, match="folder"), llm.trace(tmp_path):
            pass
        with llm.trace(tmp_path / "c.json"):
            pass
    assert {path.name for path in tmp_path.iterdir()} == {"a.json", "c.json"}


@pytest.mark.parametrize(("limits", "steps"), [({"most": 7}, 3), ({"most_steps": 4}, 4), ({"most": 1}, 1)])
def test_a_full_recording_stops_and_says_so(limits, steps):
    executable = TwoThreads()
    recording = Recording(executable, **limits)
    recording.start()
    for number in range(10, 16):
        recording.begin(number)
        recording.planned(StepPlan())
        recording.phase("run", number, number + 0.5)
        if executable.tracing:
            executable.told += [Span("op", number, thread, 0.0, 1.0) for thread in range(2)]
    assert recording.full
    assert executable.tracing is False
    recording.stop()
    assert [phase.step for phase in recording.phases] == [*range(10, 10 + steps)] == [*recording.counts]
    assert len(recording.ops) == 2 * steps
