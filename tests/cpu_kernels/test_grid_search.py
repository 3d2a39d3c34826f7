"""Compiled trials of grid points against NumPy: the same bits."""

import numpy as np
import pytest

from halfbyte.cpu_kernels.trial import CompiledTrial
from halfbyte.quant import FORMATS
from halfbyte.quant.encode_rows import encode_rows
from halfbyte.quant.points import Points, Targets
from halfbyte.quant.search import NUMPY
from tests.cpu_kernels.kernel_sets import DETECTED, ISAS_HERE

GRIDS = ("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s")


@pytest.fixture(scope="module")
def trial():
    return CompiledTrial(DETECTED)


def same(ours, theirs):
    assert np.array_equal(ours.codes, theirs.codes)
    assert (ours.wrong is None) == (theirs.wrong is None)
    assert ours.wrong is None or np.array_equal(ours.wrong, theirs.wrong)
    assert np.array_equal(ours.dot.view("u4"), theirs.dot.view("u4"))
    assert np.array_equal(ours.square.view("u4"), theirs.square.view("u4"))


def targets(rng, length, groups, even):
    x, w = rng.gamma(1, 1, (2, length, groups)).astype(np.float32)
    return Targets(x, w, rng.integers(0, 2, (length // 8, groups)).astype(np.float32) if even else None)


def check(trial, width, even, length, groups, rng):
    points = Points(rng.choice(np.int16([1, 2, 4, 7]), (75, width)), even)
    given = targets(rng, length, groups, even)
    inverse = rng.uniform(0, 5, groups).astype(np.float32)
    same(trial(given, inverse, points), NUMPY.trial(given, inverse, points))


@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize(("length", "groups"), [(8, 1), (16, 32), (32, 45)])
def test_the_same_bits(trial, width, even, length, groups, rng):
    check(trial, width, even, length, groups, rng)


@pytest.mark.parametrize("isa", [isa for isa in ISAS_HERE if isa != DETECTED])
def test_the_same_bits_on_other_instruction_sets(isa, rng):
    check(CompiledTrial(isa), 4, True, 16, 32, rng)


@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("width", [4, 8])
def test_the_first_of_equally_near_points(trial, width, even, rng):
    points = Points(np.repeat(rng.integers(1, 4, (20, width)).astype(np.int16), 2, axis=0), even)
    whole = targets(rng, 32, 64, even)
    given = Targets(np.round(whole.x), np.ones_like(whole.w), whole.odd)
    found = trial(given, np.ones(64, np.float32), points)
    assert (found.codes % 2 == 0).all()
    same(found, NUMPY.trial(given, np.ones(64, np.float32), points))


class Compiled(type(NUMPY)):
    def __init__(self, trial):
        self.trial = trial


@pytest.mark.parametrize("name", GRIDS)
def test_the_same_bytes(trial, name, rng):
    x = rng.standard_normal((3, 256)).astype(np.float32)
    x[1] *= 1e-6
    importance = rng.gamma(0.5, 1, 256).astype(np.float32)
    ours, theirs = (encode_rows(FORMATS[name], x, importance, search) for search in (Compiled(trial), NUMPY))
    assert np.array_equal(ours, theirs)
