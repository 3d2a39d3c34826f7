"""Attention that turns and stores along, in steps with one new token a sequence: to the bit what two launches do."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.model.kv_types import KvTypes
from halfbyte.model.program import Attention, KvLayer, KvWrite, RmsNorm, Rope, RopeTable
from tests.gpu_offload.attention_cases import tokens
from tests.gpu_offload.kv_stage import N_PAGES, Stage, distance, random_values
from tests.model.batches import step

SPEEDS = tuple(float(1e4 ** (-i / 16)) for i in range(16))
PAGES = [[3, 7, 1, 0, 10], [6, 2], [4, 9, 5, 8, 11]]
CASES = {
    "plain": {},
    "normed": {"normed": True},
    "neighbours of a part": {"table": RopeTable("norm", SPEEDS[:9], 1.25)},
    "two parts of a KV head": {"heads": 22},
    "windows": {"window": 18},
    "bytes": {"types": KvTypes("q8_0", "q4_0")},
    "floats": {"types": KvTypes("f32", "f32")},
}


def stage_of(device, rng, *, heads=4, normed=False, table=None, window=None, types=None):
    table = table or RopeTable("neox", SPEEDS)
    source = ("nq", "nk") if normed else ("q", "k")
    norms = [RmsNorm("q", "wq", "nq", 1e-5, heads), RmsNorm("k", "wk", "nk", 1e-6, 2)] if normed else []
    turns = [Rope(source[0], "rq", heads, table), Rope(source[1], "rk", 2, table)]
    attend = Attention("rq", "o", 0, heads, 2, 32, 32, 0.3, window)
    widths = {"q": 32 * heads, "k": 64, "v": 64, "o": 32 * heads}
    widths |= {name: widths[name[1]] for name in ("nq", "nk", "rq", "rk")}
    weights = {name: rng.standard_normal((1, 32)) for name in ("wq", "wk")}
    ops = [*norms, *turns, KvWrite("rk", "v", 0), attend]
    return Stage(device, ops, widths, [KvLayer(2, 32, 32, window)], types=types, weights=weights)


def values_for(stage, rng, batch):
    return random_values(rng, batch, {name: stage.program.widths[name] for name in "qkv"})


def pages_of(stage):
    pages = np.empty((N_PAGES, stage.pages.page_bytes), np.uint8)
    for number, page in enumerate(pages):
        stage.pages.read(number, page)
    return pages


@pytest.mark.parametrize("case", CASES)
def test_the_same_bits_as_with_two_launches(device, case):
    rng = np.random.default_rng(12)
    stage = stage_of(device, rng, **CASES[case])
    before = tokens({0: (0, 69), 1: (0, 16), 2: (0, 15)})
    values = values_for(stage, rng, before)
    stage.run(before, values)
    stage.expected(before, values)
    batch = step([([1], 69, PAGES[0]), ([1], 16, PAGES[1]), ([1], 15, PAGES[2])], 16)
    values, kept = values_for(stage, rng, batch), pages_of(stage)
    two, stored = stage.run(batch, values)["o"], pages_of(stage)
    assert (stored != kept).any()
    assert distance(two, stage.expected(batch, values)["o"]) < 1e-3
    for stage.multiprocessors in (1, 3, 40):
        for number, page in enumerate(kept):
            stage.pages.write(number, page)
        one = stage.run(batch, values, bucket=4, single=True)
        np.testing.assert_array_equal(one["o"], two)
        np.testing.assert_array_equal(pages_of(stage), stored)
        assert np.isnan(one["rq"]).all(), "nobody else turned queries"


def test_a_first_token(device):
    rng = np.random.default_rng(13)
    stage = stage_of(device, rng)
    batch = step([([1], 0, [5])], 16)
    values = values_for(stage, rng, batch)
    one = stage.run(batch, values, single=True)["o"]
    np.testing.assert_array_equal(one, stage.run(batch, values)["o"])
