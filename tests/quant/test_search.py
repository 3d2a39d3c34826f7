"""Scale and offset by search: near the best there is, exact on a grid, defined where there is nothing to fit."""

import numpy as np
import pytest

from halfbyte.quant import iq4_nl
from halfbyte.quant.search import NUMPY

E2M1 = np.array([-12, -8, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 12], np.int16)
INFINITE = float("inf")


def around(count):
    return np.arange(-(count // 2), (count + 1) // 2, dtype=np.int16)


LEVELS = {f"{n} levels": around(n) for n in (3, 4, 8, 16, 32)} | {"iq4_nl": iq4_nl.LEVELS, "e2m1": E2M1}


def groups(rng, kind, count, length=32):
    x = {
        "normal": lambda: rng.standard_normal((count, length)),
        "heavy": lambda: rng.standard_t(4, (count, length)),
        "sparse": lambda: rng.standard_normal((count, length)) * (rng.random((count, length)) < 0.3),
    }[kind]()
    return x.astype(np.float32)


def uneven(rng, x):
    """Errors of large weights count more, and columns differ as activations do."""
    size = np.sqrt(x * x + (x * x).mean(axis=1, keepdims=True))
    return (np.exp(0.8 * rng.standard_normal(x.shape)) * size).astype(np.float32)


def nearest(ratio, levels):
    return levels[np.abs(ratio[..., None] - levels).argmin(axis=-1)].astype(np.float64)


def error(x, w, scale, offset, levels):
    codes = NUMPY.codes(x, scale, offset, levels)
    zero = 0 if offset is None else offset[:, None].astype(np.float64)
    return (w * (x - (levels[codes] * scale[:, None].astype(np.float64) + zero)) ** 2).sum(axis=1)


def least_scale_error(x, w, levels):
    """Of 400 inverse scales of either sign, each with the scale that fits its codes best."""
    x, best = x.astype(np.float64), np.full(len(x), np.inf)
    extreme = np.abs(x).max(axis=1, keepdims=True)
    farthest = np.abs(levels).max()
    for part in np.linspace(0.5, 1.6 if farthest > 1 else 4, 200):
        for sign in (1, -1):
            q = nearest(x / extreme * part * farthest * sign, levels)
            along, square = (w * x * q).sum(axis=1), np.maximum((w * q * q).sum(axis=1), 1e-30)
            best = np.minimum(best, (w * x * x).sum(axis=1) - along**2 / square)
    return best


def least_affine_error(x, w, top):
    """Of 300 places of the group on the levels, each with the scale and offset that fit its codes best."""
    x, best = x.astype(np.float64), np.full(len(x), np.inf)
    low, total = x.min(axis=1, keepdims=True), w.sum(axis=1)
    y = (x - low) / (x.max(axis=1, keepdims=True) - low)
    mean_x = ((w * x).sum(axis=1) / total)[:, None]
    for steps in np.linspace(top - 1, top + 1.5, 30):
        for below in np.linspace(-0.25, 1, 10):
            q = np.clip(np.rint(y * steps - below), 0, top)
            mean_q = ((w * q).sum(axis=1) / total)[:, None]
            spread = np.maximum((w * (q - mean_q) ** 2).sum(axis=1), 1e-30)
            both = (w * (x - mean_x) * (q - mean_q)).sum(axis=1)
            best = np.minimum(best, (w * (x - mean_x) ** 2).sum(axis=1) - both**2 / spread)
    return best


@pytest.mark.parametrize("kind", ["normal", "heavy", "sparse"])
@pytest.mark.parametrize("levels", LEVELS.values(), ids=LEVELS)
def test_a_scale_is_near_the_best_of_hundreds(rng, kind, levels):
    x = groups(rng, kind, 150)
    w = uneven(rng, x)
    found = error(x, w, NUMPY.scale(x, w, levels), None, levels).sum()
    slack = 1.05 if kind == "sparse" else 1.01
    assert found <= slack * least_scale_error(x, w, levels).sum()


@pytest.mark.parametrize("kind", ["normal", "heavy"])
@pytest.mark.parametrize("top", [3, 15, 31])
def test_scale_and_offset_are_near_the_best_of_hundreds(rng, kind, top):
    x = groups(rng, kind, 200)
    w = uneven(rng, x)
    scale, offset = NUMPY.affine(x, w, top, INFINITE)
    found = error(x, w, scale, offset, np.arange(top + 1, dtype=np.int16)).sum()
    assert found <= 1.02 * least_affine_error(x, w, top).sum()


def test_codes_are_the_nearest_levels(rng):
    x = groups(rng, "heavy", 50)
    scale = rng.uniform(-0.5, 0.5, 50).astype(np.float32)
    offset = rng.uniform(-1, 1, 50).astype(np.float32)
    for levels in (around(16), np.arange(16, dtype=np.int16), iq4_nl.LEVELS, E2M1):
        for zero in (None, offset):
            ratio = (x - (0 if zero is None else zero[:, None])) / scale[:, None]
            codes = NUMPY.codes(x, scale, zero, levels)
            assert np.array_equal(np.abs(ratio - levels[codes]), np.abs(ratio[..., None] - levels).min(axis=-1))


def test_ties_between_levels_go_where_they_are_said_to():
    x = np.float32([[-1.5, -0.5, 0.5, 1.5, 2.5, 3.5]])
    one = np.ones(1, np.float32)
    levels = around(16)
    assert levels[NUMPY.codes(x, one, None, levels)].tolist() == [[-2, 0, 0, 2, 2, 4]]
    assert E2M1[NUMPY.codes(np.float32([[-2.5, 2.5, 5, 7]]), one, None, E2M1)].tolist() == [[-3, 2, 4, 6]]


@pytest.mark.parametrize(
    ("name", "unused"),
    [*((name, 0) for name in (*LEVELS, "64 levels")), *((f"{n} levels", u) for n in (16, 32, 64) for u in (1, 2))],
)
def test_weights_on_a_grid_find_it_again(rng, name, unused):
    """Also where none lies on the last levels; a coarser grid than 16 levels could be another one as well then."""
    levels = around(64) if name == "64 levels" else LEVELS[name]
    codes = rng.integers(unused, len(levels) - unused, (200, 32))
    codes[:, 3] = unused
    step = rng.uniform(0.001, 0.1, 200).astype(np.float16)
    x = levels[codes] * step.astype(np.float32)[:, None]
    w = uneven(rng, x)
    scale = NUMPY.scale(x, w, levels)
    assert np.array_equal(scale.astype(np.float16), step)
    assert np.array_equal(NUMPY.codes(x, scale, None, levels), codes)


@pytest.mark.parametrize("unused", [0, 1])
@pytest.mark.parametrize("top", [3, 15, 31])
def test_weights_on_a_grid_with_an_offset_find_it_again(rng, top, unused):
    codes = rng.integers(0, top + 1 - unused, (200, 32))
    codes[:, 3], codes[:, 9] = 0, top - unused
    step = rng.uniform(0.001, 0.1, 200).astype(np.float16).astype(np.float32)
    least = rng.uniform(-1, -0.1, 200).astype(np.float16).astype(np.float32)
    x = codes * step[:, None] + least[:, None]
    scale, offset = NUMPY.affine(x, uneven(rng, x), top, INFINITE)
    np.testing.assert_allclose(scale, step, rtol=2e-5)
    assert (np.abs(offset - least) < 1e-3 * step).all()
    assert np.array_equal(NUMPY.codes(x, scale, offset, np.arange(top + 1, dtype=np.int16)), codes)


def test_an_error_that_counts_more_gets_smaller(rng):
    x = groups(rng, "normal", 300)
    w = np.ones_like(x)
    w[:, ::4] = 30
    levels, all_alike = around(8), np.ones_like(x)
    asked, unasked = (NUMPY.scale(x, weights, levels) for weights in (w, all_alike))
    assert error(x, w, asked, None, levels).sum() < 0.8 * error(x, w, unasked, None, levels).sum()
    levels = np.arange(8, dtype=np.int16)
    asked, unasked = (NUMPY.affine(x, weights, 7, INFINITE) for weights in (w, all_alike))
    assert error(x, w, *asked, levels).sum() < 0.8 * error(x, w, *unasked, levels).sum()


def test_offsets_stay_at_or_below_their_bound(rng):
    x = groups(rng, "normal", 300) + rng.uniform(-3, 3, (300, 1)).astype(np.float32)
    scale, offset = NUMPY.affine(x, np.ones_like(x), 15, 0.0)
    assert (offset <= 0).all()
    assert (scale > 0).all()
    far_above_zero = x.min(axis=1) > 0.1 * x.max(axis=1)
    assert far_above_zero.any()
    assert (offset[far_above_zero] > -0.1 * x.max(axis=1)[far_above_zero]).all()
    assert (offset == 0).any()


def test_levels_alike_on_both_sides_have_a_scale_that_is_not_negative(rng):
    x = groups(rng, "normal", 300)
    assert (NUMPY.scale(x, np.ones_like(x), E2M1) > 0).all()
    assert (NUMPY.scale(x, np.ones_like(x), around(3)) > 0).all()
    assert (NUMPY.scale(x, np.ones_like(x), around(16)) < 0).any()


DEGENERATE = {
    "zeros": np.zeros(32),
    "negative zeros": np.full(32, -0.0),
    "all alike": np.full(32, 0.7),
    "all alike and negative": np.full(32, -0.7),
    "subnormal": np.linspace(-1e-40, 1e-41, 32),
    "largest": np.linspace(-3.4e38, 3.4e38, 32),
    "one": np.eye(1, 32)[0],
}


@pytest.mark.parametrize("counting", [0.0, 1e-44, 1.0, 1e38])
@pytest.mark.parametrize("group", DEGENERATE.values(), ids=DEGENERATE)
def test_groups_with_little_to_fit_have_finite_results(group, counting):
    x = group.astype(np.float32)[None]
    w = np.full_like(x, counting)
    levels = around(16)
    scale = NUMPY.scale(x, w, levels)
    assert np.isfinite(scale).all()
    assert (levels[NUMPY.codes(x, scale, None, levels)] <= 7).all()
    for most in (0.0, INFINITE):
        scale, offset = NUMPY.affine(x, w, 15, most)
        assert np.isfinite(scale).all()
        assert np.isfinite(offset).all()
        assert (NUMPY.codes(x, scale, offset, np.arange(16, dtype=np.int16)) <= 15).all()


@pytest.mark.parametrize("value", [0.0, 0.7, -0.7])
def test_groups_of_one_value_are_kept_exactly(value):
    x = np.full((1, 32), value, np.float32)
    w = np.ones_like(x)
    for levels in (around(16), iq4_nl.LEVELS, around(3)):
        scale = NUMPY.scale(x, w, levels)
        np.testing.assert_allclose(scale * levels[NUMPY.codes(x, scale, None, levels)], x, rtol=1e-6)
    for most in (0.0, INFINITE):
        scale, offset = NUMPY.affine(x, w, 15, most)
        codes = NUMPY.codes(x, scale, offset, np.arange(16, dtype=np.int16))
        np.testing.assert_allclose(scale * codes + offset, x, rtol=1e-6)


def test_a_group_without_any_weight_of_errors_is_fit_as_if_all_counted_alike(rng):
    x = groups(rng, "normal", 20)
    assert np.array_equal(NUMPY.scale(x, np.zeros_like(x), around(16)), NUMPY.scale(x, np.ones_like(x), around(16)))


def test_groups_do_not_depend_on_their_neighbours(rng):
    x = groups(rng, "heavy", 1500)
    w = uneven(rng, x)
    scale, (step, offset) = NUMPY.scale(x, w, around(16)), NUMPY.affine(x, w, 15, 0.0)
    for i in (0, 3, 1023, 1024, 1499):
        alone, beside = x[i : i + 1], w[i : i + 1]
        assert NUMPY.scale(alone, beside, around(16)) == scale[i]
        assert NUMPY.affine(alone, beside, 15, 0.0) == (step[i], offset[i])
