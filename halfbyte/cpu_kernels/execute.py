"""The executor: threads run the program's instructions side by side and meet at barriers, without Python.

Every thread counts the barriers it has passed; the one shared count of arrivals never goes back, so the next barrier
is complete when it reaches (own count + 1) * threads. Waiting spins for a while, then lets other threads run.
"""

from __future__ import annotations

from .clock import PLACE_ALONE
from .instruction import BARRIER, BYTES, COUNTER, PASSED, STAMP
from .instruction import state as word
from .jit import helper
from .memory import (
    atomic_add,
    atomic_load,
    atomic_swap,
    call_kernel,
    call_plain,
    call_with_two,
    load_i64,
    pause,
    store_i64,
)

PROGRAM, LENGTH, EPOCH, ARRIVED, YIELDING, CLOCK, CLOCK_ID, STAMPS, THREADS = (
    word(name)
    for name in ("program", "length", "epoch", "arrived", "yielding", "clock", "clock_id", "stamps", "threads")
)
SPINS, PATIENCE = 2_000, 3_000
"""Turns of a waiting loop before it yields at each turn, and before a worker goes to sleep: about a millisecond."""


@helper
def _wait_turn(state, turn):
    if turn < SPINS:
        pause()
    else:
        call_plain(load_i64(state + YIELDING))


@helper
def _barrier(state, passed, nth):
    if nth > 1:
        target = (passed + 1) * nth
        turn = 0
        if atomic_add(state + ARRIVED, 1) + 1 < target:
            while atomic_load(state + ARRIVED) < target:
                _wait_turn(state, turn)
                turn += 1
    return passed + 1


@helper
def _stamp(state, place):
    """Write what the clock says to `place`."""
    which = load_i64(state + CLOCK_ID)
    call_with_two(load_i64(state + CLOCK), place if which == PLACE_ALONE else which, place)


@helper
def _run(state, tid, nth):
    """Run the program once; all threads have finished when one returns."""
    own = state + THREADS + 64 * tid
    passed = load_i64(own)
    instr, length, stamps = load_i64(state + PROGRAM), load_i64(state + LENGTH), load_i64(state + STAMPS)
    if stamps != 0:
        stamps += STAMP * tid * (length + 1)
        _stamp(state, stamps + PASSED)
    for _ in range(length):
        call_kernel(load_i64(instr), instr, state, tid, nth)
        if stamps != 0:
            stamps += STAMP
            _stamp(state, stamps)
        if load_i64(instr + BARRIER) != 0:
            passed = _barrier(state, passed, nth)
            if stamps != 0:
                _stamp(state, stamps + PASSED)
        instr += BYTES
    store_i64(own, _barrier(state, passed, nth))
    if stamps != 0:
        _stamp(state, stamps + PASSED)


def begin(unused, state, tid, nth):
    """Clear the counters, open the step to waiting workers and mark those that must be woken."""
    instr = load_i64(state + PROGRAM)
    for _ in range(load_i64(state + LENGTH)):
        store_i64(instr + COUNTER, 0)
        instr += BYTES
    atomic_add(state + EPOCH, 1)
    for worker in range(1, nth):
        own = state + THREADS + 64 * worker
        store_i64(own + 16, atomic_swap(own + 8, 0))


def run(unused, state, tid, nth):
    """The calling thread's share of a step that `begin` opened."""
    _run(state, 0, nth)


def work(unused, state, tid, nth):
    """A worker: run every step that opens; returns when none came for a while, marked as asleep."""
    own = state + THREADS + 64 * tid
    turn = 0
    while turn < PATIENCE:
        if atomic_load(state + EPOCH) != load_i64(own + 24):
            store_i64(own + 24, load_i64(own + 24) + 1)
            _run(state, tid, nth)
            turn = 0
        else:
            _wait_turn(state, turn)
            turn += 1
        if turn == PATIENCE:
            atomic_swap(own + 8, 1)
            if atomic_load(state + EPOCH) != load_i64(own + 24) and atomic_swap(own + 8, 0) == 1:
                turn = 0


KERNELS = {"begin": begin, "run": run, "work": work}
