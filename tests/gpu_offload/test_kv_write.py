"""Queries turned, keys turned and stored, values stored, against the reference."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.gpu_offload.kv_layout import BITS, head_bytes, padded
from halfbyte.model.kv_types import KvTypes
from halfbyte.model.program import KvLayer, KvWrite, RmsNorm, Rope, RopeTable
from tests.gpu_offload.kv_stage import Stage, random_values
from tests.model.batches import step

BATCH = step([([1, 2, 3], 15, [3, 1]), ([4], 0, [7]), ([5, 6], 30, [9, 2])], 16)
TYPES = ["f16", "f32", "q8_0", "q4_0", "q8_0/q4_0"]


def types_of(name):
    keys, _, values = name.partition("/")
    return KvTypes(keys, values or keys)


def head_values(memory, kind, size):
    """f32[16, size] of one head's part of a page."""
    width = padded(size)
    codes = memory[: 16 * width * BITS[kind] // 8].reshape(16, -1)
    if kind in ("f32", "f16"):
        return codes.view(np.float32 if kind == "f32" else np.float16).astype(np.float32)[:, :size]
    scales = memory[codes.size :].view(np.float16).astype(np.float32).reshape(16, -1)
    if kind == "q8_0":
        numbers = codes.view(np.int8).astype(np.float32)
    else:
        words = codes.view(np.uint32)[:, :, None]
        shift = np.array([channel // 2 * 4 + channel % 2 * 16 for channel in range(8)], np.uint32)
        numbers = ((words >> shift) & 15).astype(np.float32).reshape(16, -1) - 8
    return numbers[:, :size] * np.repeat(scales, 32, axis=1)[:, :size]


def stored(stage, batch, part):
    """f32[T, heads, size] of the step's tokens in layer 0."""
    layer, place = stage.program.kv_layers[0], stage.pages.layout.places[0]
    kind = getattr(place.types, part)
    size = layer.key_size if part == "keys" else layer.value_size
    out = []
    for slot in batch.slots:
        page = np.empty(stage.pages.page_bytes, np.uint8)
        stage.pages.read(int(slot // 16), page)
        n = head_bytes(kind, size)
        begin = getattr(place, part)
        heads = [head_values(page[begin + n * h : begin + n * (h + 1)], kind, size) for h in range(layer.kv_heads)]
        out.append(np.stack(heads)[:, slot % 16])
    return np.stack(out)


def check_stored(stage, batch, exact=True):
    for part, store in (("keys", stage.reference_kv.keys[0]), ("values", stage.reference_kv.values[0])):
        expected = store[batch.slots // 16, batch.slots % 16].astype(np.float32)
        found = stored(stage, batch, part)
        if exact:
            np.testing.assert_array_equal(found, expected)
        elif expected.size:
            # A number at the border between two that are kept may fall to either.
            close = np.isclose(found, expected, rtol=1e-5, atol=1e-6)
            assert close.mean() > 0.99
            step_size = np.abs(expected).max() * {"q4_0": 0.3, "q8_0": 0.02}.get(getattr(stage.types, part), 2e-3)
            assert np.abs(found - expected).max() <= step_size


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("sizes", [(64, 64), (20, 12), (33, 80)], ids=str)
def test_stored_as_the_types_round(device, kind, sizes):
    rng = np.random.default_rng(3)
    layer = KvLayer(2, *sizes)
    widths = {"k": 2 * sizes[0], "v": 2 * sizes[1]}
    stage = Stage(device, [KvWrite("k", "v", 0)], widths, [layer], types=types_of(kind))
    values = random_values(rng, BATCH, widths)
    values["v"][1] = 0
    stage.run(BATCH, values, bucket=8)
    stage.expected(BATCH, values)
    check_stored(stage, BATCH)


def test_values_alone_are_kept_exactly(device):
    rng = np.random.default_rng(4)
    stage = Stage(
        device, [KvWrite(None, "v", 0)], {"v": 600}, [KvLayer(1, 0, 600, 3, exact=True)], types=types_of("q4_0")
    )
    values = random_values(rng, BATCH, {"v": 600})
    stage.run(BATCH, values, prompt=True)
    stage.expected(BATCH, values)
    np.testing.assert_array_equal(stored(stage, BATCH, "values")[:, 0], values["v"].astype(np.float16))


def speeds(n):
    return tuple(float(1e4 ** (-i / n)) for i in range(n))


ROPES = {
    "halves": RopeTable("neox", speeds(16)),
    "neighbours": RopeTable("norm", speeds(16)),
    "a part of the head": RopeTable("neox", speeds(9)),
    "larger": RopeTable("norm", speeds(10), 1.25),
}


@pytest.mark.parametrize("normed", [False, True], ids=["", "normed"])
@pytest.mark.parametrize("rope", ROPES)
@pytest.mark.parametrize("kind", ["f32", "q8_0"])
def test_one_launch_norms_turns_and_stores(device, kind, rope, normed):
    rng = np.random.default_rng(5)
    widths = {"q": 160, "k": 64, "v": 64, "nq": 160, "nk": 64, "rq": 160, "rk": 64}
    source = ("nq", "nk") if normed else ("q", "k")
    norms = [RmsNorm("q", "wq", "nq", 1e-5, 5), RmsNorm("k", "wk", "nk", 1e-6, 2)] if normed else []
    turns = [Rope(source[0], "rq", 5, ROPES[rope]), Rope(source[1], "rk", 2, ROPES[rope])]
    ops = [*norms, *turns, KvWrite("rk", "v", 0)]
    weights = {name: rng.standard_normal((1, 32)) for name in ("wq", "wk")}
    stage = Stage(device, ops, widths, [KvLayer(2, 32, 32)], types=types_of(kind), weights=weights)
    values = random_values(rng, BATCH, {"q": 160, "k": 64, "v": 64})
    assert len(stage.lowered(ops, False)) == 1
    found = stage.run(BATCH, values, bucket=16)
    expected = stage.expected(BATCH, values)
    np.testing.assert_allclose(found["rq"], expected["rq"], rtol=2e-6, atol=2e-6)
    check_stored(stage, BATCH, exact=False)
