"""Norms of rows of any width, alone and behind a sum, in every form, against the same in double precision."""

import numpy as np
import pytest

from halfbyte.model.program import Add, LayerNorm, RmsNorm, Tap
from tests.gpu_offload.row_ops import ByHand, Run

RNG = np.random.default_rng(5)
WIDTHS = (4, 33, 50, 64, 300, 2112)
"""With the last one a thread of 512 has more than four columns."""
ALL = ("rows", "planes", "records", "halves", "half_scales")


def values(width, tokens=5):
    sizes = np.logspace(-3, 3, tokens, dtype=np.float32)[:, None]
    return (RNG.standard_normal((tokens, width)) * sizes).astype(np.float32)


def weights(width):
    return {"w": RNG.uniform(0.5, 2, width), "b": RNG.standard_normal(width)}


def rms_norm(x, weight, groups=1):
    parts = x.astype(np.float64).reshape(len(x), groups, -1)
    return (parts / np.sqrt((parts**2).mean(axis=2, keepdims=True) + 1e-6) * weight).reshape(x.shape)


def layer_norm(x, weight, bias=0.0):
    x = x.astype(np.float64)
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-6) * weight + bias


def run(device, ops, x, given, forms=("rows",), **step):
    ops = ops if isinstance(ops, tuple) else (ops,)
    widths = dict.fromkeys([*x, *(name for op in ops for name in op.writes())], next(iter(x.values())).shape[1])
    return Run(device, ByHand(ops, widths, {"y": forms}), x, given, **step)


@pytest.mark.parametrize("width", WIDTHS)
def test_root_mean_squares(device, width):
    x, given = values(width), weights(width)
    result = run(device, RmsNorm("x", "w", "y", 1e-6), {"x": x}, given, bucket=8).value("y")
    expected = rms_norm(x, given["w"].astype(np.float32))
    assert (np.abs(result - expected) <= 12 * 2**-24 * np.abs(expected)).all()  # measured: 4


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("bias", [None, "b"])
def test_layer_norms(device, width, bias):
    x, given = values(width), weights(width)
    result = run(device, LayerNorm("x", "w", "y", 1e-6, bias), {"x": x}, given, bucket=8).value("y")
    expected = layer_norm(x, given["w"], given["b"] if bias else 0.0)
    assert np.abs(result - expected).max() < 5e-6  # measured: 1e-6


def test_a_mean_far_from_zero_costs_only_the_bits_it_takes_from_the_numbers(device):
    x, given = (1000 + RNG.standard_normal((3, 300))).astype(np.float32), weights(300)
    result = run(device, LayerNorm("x", "w", "y", 1e-6, "b"), {"x": x}, given).value("y")
    assert np.abs(result - layer_norm(x, given["w"], given["b"])).max() < 1e-3


@pytest.mark.parametrize(("size", "groups"), [(12, 3), (20, 5), (64, 2), (128, 9), (33, 4)])
def test_groups_are_normed_by_themselves(device, size, groups):
    x, given = values(size * groups), weights(size)
    result = run(device, RmsNorm("x", "w", "y", 1e-6, groups), {"x": x}, given, ALL[:3], bucket=8)
    expected = rms_norm(x, given["w"].astype(np.float32), groups)
    assert (np.abs(result.value("y") - expected) <= 12 * 2**-24 * np.abs(expected)).all()
    assert np.abs(result.planes("y") - expected).max() <= 0.51 * np.abs(expected).max() / (127 * 256)


@pytest.mark.parametrize(
    "norm", [RmsNorm("s", "w", "y", 1e-6), LayerNorm("s", "w", "y", 1e-6, "b")], ids=["rms", "layer"]
)
@pytest.mark.parametrize("width", [50, 300])
@pytest.mark.parametrize("tapped", [False, True])
def test_the_sum_before_a_norm_is_computed_along(device, norm, width, tapped):
    a, b, given = values(width), values(width), weights(width)
    ops = (Add("a", "b", "s"), Tap("s"), norm) if tapped else (Add("a", "b", "s"), norm)
    made = run(device, ops, {"a": a, "b": b}, given, bucket=8)
    assert len(made.low.calls) == 1
    assert np.array_equal(made.value("s"), a + b)
    alone = run(device, norm, {"s": a + b}, given)
    assert np.array_equal(made.value("y"), alone.value("y"))


@pytest.mark.parametrize("wanted", ["planes", "groups", "later"])
def test_a_sum_that_a_norm_cannot_compute_along_has_its_own_kernel(device, wanted):
    a, b, given = values(64), values(64), weights(32 if wanted == "groups" else 64)
    norm = RmsNorm("s", "w", "y", 1e-6, 2 if wanted == "groups" else 1)
    ops = (Add("a", "b", "s"), *((Add("s", "a", "z"),) if wanted == "later" else ()), norm)
    forms = {"s": ALL[:3]} if wanted == "planes" else {}
    made = Run(device, ByHand(ops, dict.fromkeys("abszy", 64), forms), {"a": a, "b": b}, given)
    assert len(made.low.calls) == len(ops)
    expected = rms_norm(a + b, given["w"], norm.groups)
    assert np.abs(made.value("y") - expected).max() < 5e-6


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("forms", [ALL, ALL[1:3], ALL[3:]], ids=["all", "planes", "halves"])
def test_every_form_is_of_the_same_numbers(device, width, forms):
    x, given = values(width), weights(width)
    expected = rms_norm(x, given["w"])
    made = run(device, RmsNorm("x", "w", "y", 1e-6), {"x": x}, given, forms, bucket=7)
    if "planes" in forms:
        assert np.abs(made.planes("y") - expected).max() <= 0.52 * np.abs(expected).max() / (127 * 256)
    if "halves" in forms:
        assert np.abs(made.halves("y") - expected).max() <= 2**-11 * 2 * np.abs(expected).max()


def test_a_wide_row_leaves_its_weight_where_it_is(device):
    """Shared memory has no room for both."""
    x, given = values(16384, 1), weights(16384)
    made = run(device, RmsNorm("x", "w", "y", 1e-6), {"x": x}, given)
    assert made.low.calls[0].shared == 4 * 16384
    assert np.allclose(made.value("y"), rms_norm(x, given["w"]), rtol=2e-6)


def test_a_row_is_the_same_in_any_company(device):
    x, given = values(300, 9), weights(300)
    whole = run(device, RmsNorm("x", "w", "y", 1e-6), {"x": x}, given, ALL[:3], bucket=16)
    for row in (0, 8):
        alone = run(device, RmsNorm("x", "w", "y", 1e-6), {"x": x[row : row + 1]}, given, ALL[:3])
        assert np.array_equal(alone.value("y")[0], whole.value("y")[row])
        assert np.array_equal(alone.planes("y")[0], whole.planes("y")[row])
