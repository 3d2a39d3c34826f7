"""The compiled search gives the bits of the NumPy one, whatever the instruction set, the shapes and the values."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfbyte.cpu_kernels.encoding import CompiledSearch
from halfbyte.quant import iq4_nl
from halfbyte.quant.search import NUMPY
from tests.cpu_kernels.kernel_sets import DETECTED, ISAS_HERE

ISAS = [name for name in ISAS_HERE if name in (DETECTED, "avx2", "generic")]
"""The search takes no op that differs by instruction set: one for each width of registers will do."""

LEVELS = {
    "4 bits": np.arange(-8, 8, dtype=np.int16),
    "6 bits": np.arange(-32, 32, dtype=np.int16),
    "three": np.arange(-1, 2, dtype=np.int16),
    "from zero": np.arange(16, dtype=np.int16),
    "table": iq4_nl.LEVELS,
    "mirrored table": np.array([-12, -8, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 12], np.int16),
}
BOUNDS = (0.0, -0.25, 0.5, float("inf"))
HARD = np.float32([0, -0.0, 1, -1, 0.5, 1e-45, -1e-40, 2**-126, 2**-100, 2**-101, 65504, -3.4e38, 3.4e38, 1 + 2**-23])


@cache
def compiled(name):
    return CompiledSearch(name)


@st.composite
def batches(draw):
    """Weights f32[G, L] and how much errors count: ordinary, on a grid, of all sizes, or any of the hard values."""
    shape = draw(st.integers(1, 40)), draw(st.sampled_from([1, 5, 8, 16, 16, 20, 32, 32, 48, 63]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    normal = rng.standard_normal(shape)
    x = {
        "ordinary": lambda: normal,
        "heavy": lambda: rng.standard_t(2, shape),
        "grid": lambda: np.clip(np.rint(3 * normal), -8, 7) * rng.random((shape[0], 1)),
        "sizes": lambda: normal * 2.0 ** rng.integers(-140, 126, (shape[0], 1)),
        "hard": lambda: rng.choice(HARD, shape),
        "mixed": lambda: np.where(rng.random(shape) < 0.1, rng.choice(HARD, shape), normal),
    }[draw(st.sampled_from(["ordinary", "heavy", "grid", "sizes", "hard", "mixed"]))]()
    w = {
        "ones": lambda: np.ones(shape),
        "uneven": lambda: rng.standard_normal(shape) ** 4,
        "few": lambda: rng.random(shape) < 0.1,
        "hard": lambda: np.abs(rng.choice(HARD, shape)),
    }[draw(st.sampled_from(["ones", "uneven", "few", "hard"]))]()
    return x.astype(np.float32), w.astype(np.float32)


def assert_same_bits(found, expected):
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert np.array_equal(found.view(np.uint8), expected.view(np.uint8))


def assert_same_numbers(found, expected):
    """Sums of squares of the largest floats overflow: which NaN comes of that means nothing."""
    lost = np.isnan(expected)
    assert np.array_equal(np.isnan(found), lost)
    assert_same_bits(np.where(lost, np.float32(0), found), np.where(lost, np.float32(0), expected))


@pytest.mark.parametrize("isa_name", ISAS)
@settings(deadline=None, max_examples=60)
@given(batch=batches(), levels=st.sampled_from(list(LEVELS)))
def test_scales_and_their_codes_have_the_same_bits(isa_name, batch, levels):
    x, w = batch
    scale = NUMPY.scale(x, w, LEVELS[levels])
    assert_same_bits(compiled(isa_name).scale(x, w, LEVELS[levels]), scale)
    moments = compiled(isa_name).moments(x, w, scale, None, LEVELS[levels])
    assert_same_numbers(moments, NUMPY.moments(x, w, scale, None, LEVELS[levels]))
    codes = compiled(isa_name).codes(x, scale, None, LEVELS[levels])
    assert_same_bits(codes, NUMPY.codes(x, scale, None, LEVELS[levels]))


@pytest.mark.parametrize("isa_name", ISAS)
@settings(deadline=None, max_examples=60)
@given(batch=batches(), top=st.sampled_from([1, 3, 15, 31]), most=st.sampled_from(BOUNDS))
def test_scales_and_offsets_and_their_codes_have_the_same_bits(isa_name, batch, top, most):
    x, w = batch
    scale, offset = NUMPY.affine(x, w, top, most)
    found = compiled(isa_name).affine(x, w, top, most)
    assert_same_bits(found[0], scale)
    assert_same_bits(found[1], offset)
    levels = np.arange(top + 1, dtype=np.int16)
    moments = compiled(isa_name).moments(x, w, scale, offset, levels)
    # Of a range that no float holds, as from -3.4e38 to 3.4e38, nothing is left to sum.
    held = np.flatnonzero(np.isfinite(scale))
    expected = NUMPY.moments(x, w, scale, offset, levels)
    assert_same_numbers(*(np.ascontiguousarray(each[:, held]) for each in (moments, expected)))
    assert_same_bits(compiled(isa_name).codes(x, scale, offset, levels), NUMPY.codes(x, scale, offset, levels))


def test_threads_do_not_disturb_each_other(rng):
    search, levels = compiled(DETECTED), LEVELS["4 bits"]
    parts = [rng.standard_normal((501 + i, 32)).astype(np.float32) for i in range(8)]
    w = [np.abs(part) for part in parts]
    alone = [(search.scale(x, y, levels), *search.affine(x, y, 15, 0.0)) for x, y in zip(parts, w, strict=True)]
    with ThreadPoolExecutor(4) as pool:
        scales = [pool.submit(search.scale, x, y, levels) for x, y in zip(parts, w, strict=True)]
        both = [pool.submit(search.affine, x, y, 15, 0.0) for x, y in zip(parts, w, strict=True)]
    for scale, pair, expected in zip(scales, both, alone, strict=True):
        for found, value in zip((scale.result(), *pair.result()), expected, strict=True):
            assert_same_bits(found, value)


@pytest.mark.parametrize("length", [8, 32])
def test_no_groups_are_an_answer_too(length):
    x = np.empty((0, length), np.float32)
    search, scale = compiled(DETECTED), np.empty(0, np.float32)
    assert search.scale(x, x, LEVELS["4 bits"]).shape == (0,)
    assert [part.shape for part in search.affine(x, x, 15, 0.0)] == [(0,), (0,)]
    assert search.codes(x, scale, None, LEVELS["4 bits"]).shape == (0, length)
    assert search.moments(x, x, scale, None, LEVELS["4 bits"]).shape == (6, 0)


def test_arrays_of_any_layout_are_accepted(rng):
    x = np.asfortranarray(rng.standard_normal((20, 32)).astype(np.float32))[::2]
    search, w = compiled(DETECTED), np.broadcast_to(np.float32(1), x.shape)
    assert_same_bits(search.scale(x, w, LEVELS["table"]), NUMPY.scale(x, w, LEVELS["table"]))
