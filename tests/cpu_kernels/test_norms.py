"""Norms of rows that fill no vector, against the same in double precision; also as the last op of an encoder."""

import numpy as np
import pytest

from halfbyte.model.program import Add, LayerNorm, Linear, RmsNorm, Scale, TakeRows
from tests.cpu_kernels.op_programs import SHOW, SIZE, build, on_table
from tests.cpu_kernels.products import batch_of, f32_weight
from tests.cpu_kernels.programs import poison

WEIGHT = np.random.default_rng(2).uniform(0.5, 2, SIZE).astype(np.float32)
BIAS = np.random.default_rng(3).standard_normal(SIZE).astype(np.float32)


def result_of(table, *ops, weights, threads=1, encoder=False):
    """f64[SIZE, SIZE] of all rows of the table, in one step, and nothing beyond."""
    program, given = on_table(table, *ops, encoder=encoder)
    runner = build(program, given | {name: f32_weight(values) for name, values in weights.items()}, threads=threads)
    poison(runner)
    around = np.full((SIZE + 2, SIZE), np.nan, np.float32)
    runner.run(batch_of(range(SIZE)), around[1:-1])
    runner.close()
    assert np.isnan(around[[0, -1]]).all()
    return around[1:-1].astype(np.float64)


def layer_norm(x, eps, weight, bias=0.0):
    x = x.astype(np.float64)
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + eps) * weight + bias


def rms_norm(x, eps, weight, groups=1):
    parts = x.astype(np.float64).reshape(SIZE, groups, -1)
    return (parts / np.sqrt((parts**2).mean(axis=2, keepdims=True) + eps) * weight).reshape(SIZE, SIZE)


@pytest.fixture
def x(rng):
    return rng.standard_normal((SIZE, SIZE)).astype(np.float32) * np.logspace(-6, 6, SIZE, dtype=np.float32)[:, None]


@pytest.mark.parametrize("groups", [1, 3, 37])
def test_root_mean_squares_are_within_a_few_units_of_the_last_place(x, groups):
    part = WEIGHT[: SIZE // groups]
    result = result_of(x, RmsNorm("x", "w", "y", 1e-6, groups), *SHOW, weights={"w": part})
    error = np.abs(result / rms_norm(x, 1e-6, part, groups) - 1).max()
    assert error < 18 * 2**-24  # measured: 3.7


@pytest.mark.parametrize("bias", [None, "b"])
@pytest.mark.parametrize("threads", [1, 3])
def test_layer_norms_are_within_a_few_units_of_the_largest(x, bias, threads):
    weights = {"w": WEIGHT} | ({"b": BIAS} if bias else {})
    result = result_of(x, LayerNorm("x", "w", "y", 1e-6, bias), *SHOW, weights=weights, threads=threads)
    expected = layer_norm(x, 1e-6, WEIGHT, BIAS if bias else 0.0)
    assert np.abs(result - expected).max() < 1e-5  # measured: 1.3e-6


def test_a_mean_far_from_zero_costs_only_the_bits_it_takes_from_the_numbers(rng):
    x = (1000 + rng.standard_normal((SIZE, SIZE))).astype(np.float32)
    result = result_of(x, LayerNorm("x", "w", "y", 1e-12, "b"), *SHOW, weights={"w": WEIGHT, "b": BIAS})
    assert np.abs(result - layer_norm(x, 1e-12, WEIGHT, BIAS)).max() < 1e-3


@pytest.mark.parametrize("norm", [RmsNorm("s", "w", "y", 1e-6), LayerNorm("s", "w", "y", 1e-6)], ids=["rms", "layer"])
@pytest.mark.parametrize("again", [False, True])
def test_the_sum_before_a_norm_is_computed_along(rng, norm, again):
    """And is there for others, too."""
    x = rng.standard_normal((SIZE, SIZE)).astype(np.float32)
    ops = [Scale("x", "z", 2.0), Add("x", "z", "s"), norm]
    ops += [Add("y", "s", "last"), TakeRows("last", "shown"), SHOW[1]] if again else SHOW
    result = result_of(x, *ops, weights={"w": WEIGHT})
    expected = (rms_norm if isinstance(norm, RmsNorm) else layer_norm)(3 * x, 1e-6, WEIGHT)
    assert np.abs(result - (expected + 3 * x if again else expected)).max() < 1e-5


LAST = {
    "root mean square": RmsNorm("asked", "w", "y", 1e-6),
    "layer norm": LayerNorm("asked", "w", "y", 1e-6, "b"),
    "product": Linear("asked", "one", "y"),
}


@pytest.mark.parametrize("last", list(LAST))
@pytest.mark.parametrize("threads", [1, 3])
def test_an_encoder_may_end_in_any_of_these(rng, last, threads):
    x = rng.standard_normal((SIZE, SIZE)).astype(np.float32)
    weights = {"w": WEIGHT, "b": BIAS}
    ops = (TakeRows("x", "asked"), LAST[last])
    weights = {name: weights[name] for name in LAST[last].weights() if name in weights}
    result = result_of(x, *ops, weights=weights, threads=threads, encoder=True)
    expected = {"product": x, "root mean square": rms_norm(x, 1e-6, WEIGHT)}
    assert np.abs(result - expected.get(last, layer_norm(x, 1e-6, WEIGHT, BIAS))).max() < 1e-5


def test_an_encoder_may_end_in_the_rows_themselves(rng):
    x = rng.standard_normal((SIZE, SIZE)).astype(np.float32)
    assert np.array_equal(result_of(x, TakeRows("x", "y"), weights={}, encoder=True), x)
