"""Architectures that put the usual ops together in other ways: the same bits, no race, near the reference.

One choice of formats for each: what a format does is tested with the architectures in `ARCHS`.
"""

import numpy as np
import pytest

from halfbyte.formats import open_gguf
from halfbyte.model import bind
from halfbyte.model.program import ExpertLinear
from tests.cpu_kernels.lowered import overlapping_lives, races
from tests.cpu_kernels.programs import ARCHS, MIXED, build, distance, logits_of, poison, rounding_logits
from tests.model.tiny import make_tiny_gguf
from tests.model.tiny_traits import ENCODERS, TRAITS

OTHERS = [arch for arch in TRAITS if arch not in (*ARCHS, *ENCODERS)]
NEAR = 8e-4


@pytest.fixture(scope="module", params=OTHERS)
def model(request, tmp_path_factory):
    return bind(open_gguf(make_tiny_gguf(tmp_path_factory.mktemp("model") / "model.gguf", request.param, **MIXED)))


@pytest.fixture(scope="module")
def runners(model):
    """One thread and two."""
    made = [build(model, threads=threads) for threads in (1, 2)]
    yield made
    for runner in made:
        runner.close()


@pytest.mark.parametrize("chunks", [[1, 20, 8, 33], [11]], ids=str)
def test_chunks_and_threads_change_no_bit(runners, chunks):
    for runner in runners:
        poison(runner)
    whole = logits_of(runners[0])
    assert np.isfinite(whole).all()
    assert np.array_equal(logits_of(runners[1], chunks), whole)


def test_calls_that_share_memory_have_a_barrier_between(runners):
    assert races(runners[1]) == []
    assert overlapping_lives(runners[1]) == []


def test_the_reference_is_near(model, runners, monkeypatch):
    if any(isinstance(op, ExpertLinear) for op in model.program.ops):
        pytest.skip("a token whose experts are nearly equal may get others")
    assert distance(logits_of(runners[0]), rounding_logits(model, monkeypatch)) < NEAR
