"""Ops that work number by number, against the same in double precision."""

import math

import numpy as np
import pytest

from halfbyte.model.program import Act, Add, AddVector, GatedAct, Linear, Mul, Scale, Softcap, TakeRows
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


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))


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


@pytest.mark.parametrize("kernel", ["alone", "gated"])
def test_gelu_is_that_of_the_error_function(kernel):
    """Below zero it is a small difference of large numbers, in any float32; here in units of x, or of 1."""
    op = Act("x", "y", "gelu") if kernel == "alone" else GatedAct("x", "x", "y", "gelu")
    for x in (spread(-9, 9), spread(-1e-3, 1e-3)):
        expected = gelu(x.astype(np.float64))
        scale = np.maximum(np.abs(x), 1)
        if kernel == "gated":
            expected, scale = expected * x, scale * np.maximum(np.abs(x), 1)
        assert (np.abs(result_of(x, op, *SHOW) - expected) / scale).max() < 3e-7  # measured: 1.4e-7


@pytest.mark.parametrize("act", [*ACTS, "gelu"])
def test_an_activation_alone_is_what_a_gate_of_ones_makes_of_it(act, rng):
    x = small_and_large(rng)
    ones = (Linear("x", "zeros", "0"), AddVector("0", "ones", "1"), GatedAct("x", "1", "y", act), *SHOW)
    weights = {"zeros": f32_weight(np.zeros((SIZE, SIZE))), "ones": f32_weight(np.ones(SIZE))}
    assert np.array_equal(result_of(x, Act("x", "y", act), *SHOW), result_of(x, *ones, weights=weights))


def test_the_clamped_gate(rng):
    gate = spread(-30, 30)
    up = rng.permutation(gate.reshape(-1)).reshape(SIZE, SIZE)
    second = Linear("x", "shift", "u")  # of a table of gates, the ups are columns moved by one
    shift = np.roll(np.eye(SIZE, dtype=np.float32), 1, axis=1)
    table = np.where(np.arange(SIZE) % 2 == 0, gate, up)
    result = result_of(
        table, second, GatedAct("x", "u", "y", "swiglu_oai"), *SHOW, weights={"shift": f32_weight(shift)}
    )
    g, u = np.minimum(table.astype(np.float64), 7), np.clip(np.roll(table, -1, axis=1).astype(np.float64), -7, 7)
    expected = g / (1 + np.exp(-1.702 * g)) * (u + 1)
    assert (np.abs(result - expected) <= 200 * 2**-24 * np.abs(expected)).all()  # measured: 44


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
    assert np.array_equal(result_of(x, Scale("x", "z", 0.3), Mul("z", "x", "y"), *SHOW, threads=threads), x * scaled)
    vector = rng.standard_normal(SIZE).astype(np.float32)
    weights = {"vector": f32_weight(vector)}
    for ops in ((AddVector("x", "vector", "y"), *SHOW), (*LOGITS, AddVector("z", "vector", "y"))):
        assert np.array_equal(result_of(x, *ops, weights=weights, threads=threads), x + vector)


def test_a_program_whose_logits_would_be_written_beyond_their_end_is_our_own_bug():
    with pytest.raises(AssertionError, match="mul cannot write the logits"):
        result_of(spread(0, 1), TakeRows("x", "asked"), Mul("asked", "asked", "y"))
