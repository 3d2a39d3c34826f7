"""Ops that work number by number, against the same in double precision."""

import numpy as np
import pytest

from halfbyte.errors import UnsupportedError
from halfbyte.model.program import Add, GatedAct, Linear, RmsNorm, Scale, Softcap, TakeRows
from tests.cpu_kernels.op_programs import SHOW, SIZE, build, on_table
from tests.cpu_kernels.products import batch_of, f32_weight


def result_of(table, *ops, weights=None, threads=1):
    """f64[SIZE, SIZE] of all rows of the table, in one step."""
    program, given = on_table(table, *ops)
    runner = build(program, given | (weights or {}), threads=threads)
    logits = np.full((SIZE, SIZE), np.nan, np.float32)
    runner.run(batch_of(range(SIZE)), logits)
    runner.close()
    return logits.astype(np.float64)


LOGITS = (TakeRows("x", "asked"), Linear("asked", "one", "z"))
"""The numbers as logits, which later ops change in place."""


def spread(low, high):
    """f32[SIZE, SIZE]: a hundred thousand numbers from `low` to `high`."""
    return np.linspace(low, high, SIZE * SIZE).astype(np.float32).reshape(SIZE, SIZE)


def small_and_large(rng):
    """f32[SIZE, SIZE] over all magnitudes from 1e-20 to 80."""
    size = np.exp(rng.uniform(np.log(1e-20), np.log(80), (SIZE, SIZE)))
    return (size * rng.choice([-1, 1], (SIZE, SIZE))).astype(np.float32)


def silu(x):
    return x / (1 + np.exp(-x))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def relu(x):
    return np.maximum(x, 0)


# Relative error of act(x) * x in units of 2^-24. Measured: silu 3.2, gelu_tanh 3.2 near zero and above, and 44 at -5,
# where the exponent is large and its rounding with it; relu 1.
ACTS = {"silu": (silu, 15), "gelu_tanh": (gelu_tanh, 200), "relu": (relu, 1)}


@pytest.mark.parametrize("act", list(ACTS))
@pytest.mark.parametrize("low", [-5, -1e-3, 0])
def test_activations_are_within_a_few_units_of_the_last_place(act, low):
    function, units = ACTS[act]
    x = spread(low, 30)
    expected = function(x.astype(np.float64)) * x
    error = np.abs(result_of(x, GatedAct("x", "x", "y", act), *SHOW) - expected)
    assert (error <= units * 2**-24 * np.abs(expected)).all()


@pytest.mark.parametrize("act", list(ACTS))
def test_activations_far_out_are_zero_or_the_number_itself(act):
    x = spread(-3e4, 3e4)
    result = result_of(x, GatedAct("x", "x", "y", act), *SHOW)
    expected = np.where(x > 0, x.astype(np.float64) ** 2, 0)
    far = np.abs(x) > 100
    assert np.abs(result - expected)[far].max() <= 2**-23 * 9e8
    assert np.abs(result[x < -100]).max() < 1e-25


def test_softcap_is_within_a_few_units_of_the_cap(rng):
    for x in (spread(-200, 200), small_and_large(rng)):
        result = result_of(x, *LOGITS, Softcap("z", "y", 30.0))
        error = np.abs(result - 30 * np.tanh(x.astype(np.float64) / 30)).max()
        assert error <= 30 * 1e-6  # measured: 30 * 2.1e-7


@pytest.mark.parametrize("threads", [1, 2])
def test_sums_and_products_are_rounded_once(rng, threads):
    x = small_and_large(rng)
    scaled, total = x * np.float32(0.3), x + x * np.float32(0.3)
    scale = Scale("x", "y", 0.3)
    assert np.array_equal(result_of(x, scale, *SHOW, threads=threads), scaled)
    assert np.array_equal(result_of(x, *LOGITS, Scale("z", "y", 0.3), threads=threads), scaled)
    assert np.array_equal(result_of(x, Scale("x", "z", 0.3), Add("z", "x", "y"), *SHOW, threads=threads), total)


def test_norms_are_within_a_few_units_of_the_last_place(rng):
    x = rng.standard_normal((SIZE, SIZE)).astype(np.float32) * np.logspace(-6, 6, SIZE, dtype=np.float32)[:, None]
    weight = rng.uniform(0.5, 2, SIZE).astype(np.float32)
    for groups in (1, 3, 37):
        part = weight[: SIZE // groups]
        norm = RmsNorm("x", "w", "y", 1e-6, groups)
        result = result_of(x, norm, *SHOW, weights={"w": f32_weight(part)})
        parts = x.astype(np.float64).reshape(SIZE, groups, -1)
        expected = parts / np.sqrt((parts**2).mean(axis=2, keepdims=True) + 1e-6) * part
        error = np.abs(result / expected.reshape(SIZE, SIZE) - 1).max()
        assert error < 18 * 2**-24  # measured: 3.7


def test_an_activation_without_a_kernel_is_refused():
    with pytest.raises(UnsupportedError, match="no activation 'gelu'; known: silu"):
        result_of(spread(0, 1), GatedAct("x", "x", "y", "gelu"), *SHOW)


@pytest.mark.parametrize("last", [TakeRows("x", "y"), Softcap("asked", "y", 1.0)], ids=["rows", "cap"])
def test_a_program_whose_logits_would_be_written_beyond_their_end_is_our_own_bug(last):
    with pytest.raises(AssertionError, match="take_rows cannot write the logits"):
        result_of(spread(0, 1), *([] if last.x == "x" else [TakeRows("x", "asked")]), last)
