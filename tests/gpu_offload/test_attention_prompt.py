"""Attention of many tokens a sequence against the reference, over ragged sequences and what came before."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.errors import UnsupportedError
from tests.gpu_offload.attention_cases import KINDS, PAIRS, PLAIN, TYPES, attend, attention_stage, store, tokens
from tests.gpu_offload.kv_stage import distance, random_values
from tests.model.batches import step

# Relative L2, measured: 6e-4 at most. Queries, weights and values of other types are rounded to halves.
BUDGET = 1.5e-3


@pytest.mark.parametrize("pair", PAIRS, ids=" in ".join)
def test_near_the_reference(device, pair):
    rng = np.random.default_rng(6)
    stage = attention_stage(device, rng, **KINDS[pair[0]], types=TYPES[pair[1]])
    store(stage, rng, tokens({0: (0, 37), 2: (0, 70)}))
    batch = tokens({0: (37, 30), 1: (0, 21), 2: (70, 2)})
    found, expected = attend(stage, rng, batch, prompt=True)
    assert distance(found, expected) < BUDGET


@pytest.mark.parametrize("window", [None, 70])
def test_more_queries_than_a_block_takes(device, window):
    rng = np.random.default_rng(12)
    stage = attention_stage(device, rng, **PLAIN | {"heads": 2, "kv_heads": 1, "window": window})
    pages = rng.permutation(12)
    store(stage, rng, step([([1] * 21, 0, pages[:10])], 16))
    batch = step([([1] * 139, 21, pages[:10]), ([1] * 20, 0, pages[10:])], 16)
    found, expected = attend(stage, rng, batch, prompt=True)
    assert distance(found, expected) < BUDGET


def test_queries_of_zeros_see_no_more_than_others(device):
    """Their scores are all alike, and what is hidden weighs nothing beside them."""
    rng = np.random.default_rng(11)
    stage = attention_stage(device, rng, **PLAIN | {"window": 20})
    store(stage, rng, tokens({0: (0, 30)}))
    batch = tokens({0: (30, 20)})
    values = random_values(rng, batch, {name: stage.program.widths[name] for name in "qkv"})
    values["q"] *= np.where(np.arange(20) % 2, 0, 1e-30)[:, None].astype(np.float32)
    assert distance(stage.run(batch, values, prompt=True)["o"], stage.expected(batch, values)["o"]) < BUDGET


def test_heads_that_are_too_wide_are_an_error(device):
    stage = attention_stage(device, np.random.default_rng(1), **PLAIN | {"value_size": 257})
    with pytest.raises(UnsupportedError, match="too wide"):
        stage.lowered(stage.ops, True)
