"""What keys and values become in a store of each type."""

import numpy as np
import pytest

from halfbyte.errors import UnsupportedError
from halfbyte.model.kv_types import KV_TYPES, KvTypes, kv_types, rounded
from halfbyte.model.program import KvLayer

X = np.random.default_rng(1).standard_normal((200, 80)).astype(np.float32)


def test_names():
    assert kv_types("q8_0") == KvTypes("q8_0", "q8_0")
    assert kv_types("q8_0/q4_0") == KvTypes("q8_0", "q4_0")
    assert kv_types("q8_0/q8_0").name == "q8_0"
    assert kv_types("f16/q8_0").name == "f16/q8_0"


@pytest.mark.parametrize("name", ["", "q5", "/", "q8_0/", "/q8_0", "f16/f16/f16", "f32/", "F16"])
def test_other_names_are_refused(name):
    with pytest.raises(UnsupportedError, match="known: f16, q8_0, q4_0, f32"):
        kv_types(name)


@pytest.mark.parametrize(("kind", "steps"), [("q8_0", 127), ("q4_0", 8)])
def test_a_block_is_as_near_as_its_largest_number_allows(kind, steps):
    for begin in (0, 32, 64):
        block = X[:, begin : begin + 32]
        wrong = np.abs(rounded(kind, X)[:, begin : begin + 32] - block).max(axis=1)
        # q4_0 has no +8: what lies near the far end loses up to a whole step.
        bound = np.abs(block).max(axis=1) / steps * (0.51 if kind == "q8_0" else 1.01)
        assert (wrong <= bound).all()
        assert (wrong > bound / 10).any()


@pytest.mark.parametrize("kind", ["f16", "q8_0", "q4_0"])
def test_rounding_what_is_rounded_changes_little_and_nothing_becomes_nothing(kind):
    once = rounded(kind, X)
    assert np.allclose(rounded(kind, once), once, rtol=1e-3, atol=1e-6)
    assert np.array_equal(rounded(kind, 0 * X), 0 * X)
    assert np.array_equal(rounded(kind, np.full((1, 40), 1e-9, np.float32)), np.zeros((1, 40)))


def test_floats_stay_as_they_are():
    assert np.array_equal(rounded("f32", X), X)


def test_what_filters_look_back_at_is_kept_as_halves_at_least():
    layer = KvLayer(1, 0, 80, 3, exact=True)
    kept = {name: kv_types(name).of(layer).name for name in (*KV_TYPES, "f32/q8_0")}
    assert kept == {"f16": "f16", "q8_0": "f16", "q4_0": "f16", "f32": "f32", "f32/q8_0": "f32/f16"}
    assert kv_types("q4_0").of(KvLayer(1, 80, 80)) == kv_types("q4_0")


@pytest.mark.parametrize(("kind", "n_bytes"), [("f32", 320), ("f16", 160), ("q8_0", 86), ("q4_0", 46)])
def test_bytes_of_a_token(kind, n_bytes):
    assert kv_types(kind).token_bytes(80, 80) == 2 * n_bytes
