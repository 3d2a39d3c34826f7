"""Ops that work column by column, in every form, against the reference."""

import numpy as np
import pytest

from halfbyte.model.program import Act, Add, AddScaled, AddVector, GatedAct, Mul, Scale, Softcap, TakeRows
from halfbyte.model.reference_ops import activate, gate_with
from tests.gpu_offload.row_ops import ByHand, Run

RNG = np.random.default_rng(4)
WIDTHS = (4, 33, 50, 64, 300, 1100)
"""The last one is shared by two blocks."""
ALL = ("rows", "planes", "records", "halves", "half_scales")


def values(width, tokens=5, size=3.0):
    return (RNG.standard_normal((tokens, width)) * size).astype(np.float32)


def run(device, op, given, forms=("rows",), weights=None, **step):
    width = next(iter(given.values())).shape[1]
    low = ByHand((op,), dict.fromkeys([*given, "y"], width), {"y": forms})
    return Run(device, low, given, weights, **step)


def close(result, expected, units=4.0):
    """In units of the last place of the larger of a number and 1."""
    assert (np.abs(result - expected) <= units * 2**-23 * np.maximum(np.abs(expected), 1)).all()


@pytest.mark.parametrize("width", WIDTHS)
def test_sums_products_and_vectors_are_the_references(device, width):
    a, b, vector = values(width), values(width), values(width, 1)
    given = {"a": a, "b": b}
    assert np.array_equal(run(device, Add("a", "b", "y"), given, bucket=8).value("y"), a + b)
    assert np.array_equal(run(device, Mul("a", "b", "y"), given, bucket=8).value("y"), a * b)
    summed = run(device, AddVector("a", "v", "y"), {"a": a}, weights={"v": vector}, bucket=8)
    assert np.array_equal(summed.value("y"), a + vector)
    assert np.array_equal(run(device, Scale("a", "y", 0.3), {"a": a}).value("y"), a * np.float32(0.3))


def test_softcap(device):
    x = values(100, size=60.0)
    expected = np.float32(30) * np.tanh(x / np.float32(30))
    close(run(device, Softcap("x", "y", 30.0), {"x": x}).value("y"), expected)


@pytest.mark.parametrize("act", ["silu", "gelu_tanh", "gelu", "relu"])
def test_activations(device, act):
    x = np.linspace(-20, 20, 4000, dtype=np.float32).reshape(4, 1000)
    close(run(device, Act("x", "y", act), {"x": x}).value("y"), activate(act, x))


@pytest.mark.parametrize("act", ["silu", "gelu_tanh", "gelu", "relu", "swiglu_oai"])
def test_gates(device, act):
    gate, up = values(130), values(130, size=5.0)
    result = run(device, GatedAct("gate", "up", "y", act), {"gate": gate, "up": up}).value("y")
    expected = gate_with(act, gate, up)
    assert (np.abs(result - expected) <= 8 * 2**-23 * np.maximum(np.abs(gate * up), 1)).all()


@pytest.mark.parametrize("act", ["silu", "relu", "swiglu_oai"])
def test_what_is_no_number_stays_so(device, act):
    gate = np.array([[np.nan, 1, np.nan, np.inf, -np.inf, 0]], np.float32)
    up = np.array([[1, np.nan, np.nan, 1, 1, 1]], np.float32)
    result = run(device, GatedAct("gate", "up", "y", act), {"gate": gate, "up": up}).value("y")
    with np.errstate(invalid="ignore"):
        expected = gate_with(act, gate, up)
    assert np.array_equal(np.isnan(result), np.isnan(expected))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("forms", [ALL, ALL[1:3], ALL[:3], ALL[3:]], ids=["all", "planes", "rows and planes", "halves"])
def test_every_form_is_of_the_same_numbers(device, width, forms):
    a, b = values(width), values(width)
    made = run(device, Mul("a", "b", "y"), {"a": a, "b": b}, forms, bucket=7)
    if "rows" in forms:
        assert np.array_equal(made.value("y"), a * b)
    if "planes" in forms:
        peaks = np.abs(a * b).max()
        assert np.abs(made.planes("y") - a * b).max() <= 0.51 * peaks / (127 * 256)
    if "halves" in forms:
        assert np.abs(made.halves("y") - a * b).max() <= 2**-11 * 2 * np.abs(a * b).max()


@pytest.mark.parametrize("asked", [False, True])
def test_an_adapter_counts_for_sequences_that_want_it(device, asked):
    a, b = values(70, 4), values(70, 4)
    b[1] = np.nan
    scales = np.array([[0.5, 2.0], [0.25, 0.0], [0.0, -1.0]], np.float32)
    seq_of, rows = [0, 1, 1, 2], [0, 2, 1, 3]
    op = AddScaled("a", "b", "y", 1, 0.5, asked)
    low = ByHand((op,), dict.fromkeys("aby", 70), {}, frozenset("ab" if asked else ""))
    result = Run(device, low, {"a": a, "b": b}, rows=rows, seq_of=seq_of, scales=scales, bucket=8).value("y")
    by_row = np.array(seq_of)[rows] if asked else np.array(seq_of)
    for row, sequence in enumerate(by_row):
        scale = scales[sequence, 1]
        expected = a[row] + (scale * np.float32(0.5)) * b[row] if scale else a[row]
        assert np.array_equal(result[row], expected)


def test_without_adapters_nothing_is_added(device):
    a, b = values(70), np.full((5, 70), np.nan, np.float32)
    assert np.array_equal(run(device, AddScaled("a", "b", "y", 0), {"a": a, "b": b}).value("y"), a)


@pytest.mark.parametrize("rows", [[], [3], [4, 0, 0, 2, 3, 1]])
def test_rows_are_taken_as_they_are_asked_for(device, rows):
    x = values(75)
    made = run(device, TakeRows("x", "y"), {"x": x}, ALL[:3], rows=rows, bucket=7)
    assert np.array_equal(made.value("y"), x[rows])
    assert np.abs(made.planes("y") - x[rows]).max(initial=0) <= 0.51 * np.abs(x).max() / (127 * 256)


def test_a_row_is_the_same_in_any_company(device):
    gate, up = values(1100, 9), values(1100, 9)
    whole = run(device, GatedAct("gate", "up", "y", "silu"), {"gate": gate, "up": up}, ALL[:3], bucket=12)
    for row in (0, 8):
        given = {"gate": gate[row : row + 1], "up": up[row : row + 1]}
        alone = run(device, GatedAct("gate", "up", "y", "silu"), given, ALL[:3])
        assert np.array_equal(alone.value("y")[0], whole.value("y")[row])
        assert np.array_equal(alone.planes("y")[0], whole.planes("y")[row])
