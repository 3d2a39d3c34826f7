"""Threads that run programs in step: nothing is lost, nothing runs twice, whatever sleeps and wakes."""

import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from halfbyte.cpu_kernels.calls import float_bits
from halfbyte.cpu_kernels.instruction import BARRIER, LAYOUTS, WORDS
from halfbyte.cpu_kernels.threads import Team
from halfbyte.errors import ResourceError
from halfbyte.model.program import Scale
from tests.cpu_kernels.op_programs import SHOW, SIZE, build, on_table
from tests.cpu_kernels.products import batch_of

ROWS = 5


@pytest.fixture(params=[1, 2, 3])
def team(request, kernels):
    made = Team(request.param, kernels)
    yield made
    made.close()


class Doublings:
    """A program that doubles 16 numbers of five rows, `length` times, each time from the other of two buffers."""

    def __init__(self, team, kernels, length):
        self.team, self.length = team, length
        self.count = np.array([ROWS])
        self.buffers = np.zeros((2, ROWS, 16), np.float32)
        self.words = np.zeros((length, WORDS), np.int64)
        for i, words in enumerate(self.words):
            a, out = (self.buffers[(i + j) % 2].ctypes.data for j in (0, 1))
            operands = {"count": self.count.ctypes.data, "a": a, "b": a, "b_stride": 64, "out": out}
            operands |= {"factor": float_bits(2.0), "width": 16, "stride": 64}
            operands = LAYOUTS["elementwise"].words(operands)
            words[: 3 + len(operands)] = [kernels.addresses["scale"], 0, 0, *operands]
            words[BARRIER // 8] = 1

    def run(self, value):
        self.buffers[0] = value
        self.buffers[1] = np.nan
        self.team.run(self.words, self.length)
        return self.buffers[self.length % 2]


@pytest.mark.parametrize("length", [1, 2, 7])
def test_many_programs_in_a_row(team, kernels, length):
    program = Doublings(team, kernels, length)
    for value in range(2000):
        assert (program.run(value) == value * 2**length).all()


def test_workers_that_fell_asleep_wake_up(team, kernels):
    program = Doublings(team, kernels, 3)
    for value in range(12):
        time.sleep((0, 0.001, 0.003, 0.06)[value % 4])
        assert (program.run(value) == value * 8).all()


def test_pauses_about_as_long_as_a_workers_patience(team, kernels):
    """A worker that falls asleep while the next step opens must not miss it."""
    program = Doublings(team, kernels, 2)
    for value in range(300):
        until = time.perf_counter() + value % 60 * 3e-5
        while time.perf_counter() < until:
            pass
        assert (program.run(value) == value * 4).all()


def test_programs_of_different_lengths_by_turns(team, kernels):
    programs = [Doublings(team, kernels, length) for length in (1, 5, 2)]
    for value in range(300):
        program = programs[value % 3]
        assert (program.run(value) == value * 2**program.length).all()


def test_two_teams_at_once(kernels):
    def work(failures):
        team = Team(2, kernels)
        program = Doublings(team, kernels, 3)
        failures.extend(value for value in range(300) if not (program.run(value) == value * 8).all())
        team.close()

    failures = []
    callers = [threading.Thread(target=work, args=(failures,)) for _ in range(2)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert failures == []


def test_closing_ends_the_workers_and_may_be_done_twice(kernels):
    team = Team(3, kernels)
    workers = [thread for thread in threading.enumerate() if thread in team._workers]
    assert len(workers) == 2
    team.close()
    team.close()
    assert not any(worker.is_alive() for worker in workers)


def test_a_team_that_never_ran_can_be_closed(kernels):
    Team(4, kernels).close()


@pytest.fixture
def scaled():
    made = build(*on_table(np.ones((SIZE, SIZE)), Scale("x", "y", 3.0), *SHOW), threads=2)
    yield made
    made.close()


def test_a_closed_model_says_so(scaled):
    scaled.close()
    scaled.close()
    logits = np.zeros((1, SIZE), np.float32)
    with pytest.raises(ResourceError, match="this model is closed; load it again"):
        scaled.run(batch_of([1]), logits)
    with pytest.raises(ResourceError, match="this model is closed; load it again"):
        scaled.top_k(logits[0], 3)


def test_other_steps_other_arrays(scaled):
    """Addresses may be kept from step to step only while they stay."""
    for rows in (3, 1, 3, 7, 7):
        logits = np.full((rows, SIZE), np.nan, np.float32)
        for tokens in (range(rows), [5] * rows):
            scaled.run(batch_of(tokens), logits)
            assert (logits == 3).all()
            logits[:] = np.nan


DROPPED = """
import gc
import numpy as np
from halfbyte.model.program import Scale
from tests.cpu_kernels.op_programs import SHOW, SIZE, build, on_table
from tests.cpu_kernels.products import batch_of

for _ in range(20):
    made = build(*on_table(np.ones((SIZE, SIZE)), Scale("x", "y", 3.0), *SHOW), threads=3)
    made.run(batch_of([1]), np.zeros((1, SIZE), np.float32))
    made = None
    gc.collect()
made = build(*on_table(np.ones((SIZE, SIZE)), Scale("x", "y", 3.0), *SHOW), threads=3)
made.run(batch_of([1]), np.zeros((1, SIZE), np.float32))
"""


def test_a_model_that_is_dropped_or_left_to_the_end_of_the_process_does_no_harm(kernels):
    subprocess.run([sys.executable, "-c", DROPPED], check=True)
