"""Turning heads by their position: far out, without keys, and the fractions of a turn it is made of."""

from __future__ import annotations

import math

import numpy as np
import pytest

from halfbyte.gpu_offload.rope_table import turns_data
from halfbyte.model.program import KvLayer, RmsNorm, Rope, RopeTable
from tests.gpu_offload.kv_stage import Stage, random_values
from tests.model.batches import step


@pytest.mark.parametrize("kind", ["neox", "norm"])
def test_far_positions_are_as_exact_as_near_ones(device, kind):
    """Of angles in single precision nothing would be left."""
    rng = np.random.default_rng(1)
    speeds = tuple(float(5e5 ** (-i / 32)) for i in range(32))
    table = RopeTable(kind, (*speeds[:-1], -2.5))
    stage = Stage(device, [Rope("q", "r", 3, table)], {"q": 192, "r": 192}, [KvLayer(1, 64, 64)])
    pages = np.zeros(8192, int)
    batch = step([([1] * 3, 131069, pages), ([1], 0, pages), ([1], 77777, pages)], 16)
    values = random_values(rng, batch, {"q": 192})
    found, expected = stage.run(batch, values)["r"], stage.expected(batch, values)["r"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_a_norm_of_heads_is_done_along(device):
    rng = np.random.default_rng(2)
    table = RopeTable("neox", (1.0, 0.1, 0.01, 0.001))
    ops = [RmsNorm("q", "w", "n", 1e-6, 3), Rope("n", "r", 3, table)]
    widths = dict.fromkeys(("q", "n", "r"), 36)
    stage = Stage(device, ops, widths, [KvLayer(1, 12, 12)], weights={"w": rng.standard_normal((1, 12))})
    batch = step([([1] * 3, 5, [0])], 16)
    values = random_values(rng, batch, {"q": 36})
    found = stage.run(batch, values, prompt=True)["r"]
    np.testing.assert_allclose(found, stage.expected(batch, values)["r"], rtol=0, atol=2e-6)


def test_turns_are_fractions_of_64_bits():
    speeds = (1.0, 2 * math.pi / 4, 1e-7, 0.0, -1.0)
    turns = np.frombuffer(turns_data(RopeTable("norm", speeds)), np.uint64)
    assert turns[1] == pytest.approx(1 << 62, rel=1e-15)
    assert turns[3] == 0
    assert int(turns[0]) + int(turns[4]) == 1 << 64
    for speed, turn in zip(speeds[:3], turns, strict=False):
        assert float(turn) / 2**64 * 2 * math.pi == pytest.approx(speed, rel=1e-9)
