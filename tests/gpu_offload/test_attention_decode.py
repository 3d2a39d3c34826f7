"""Attention of few tokens a sequence against the reference, and against itself in other company."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.gpu_offload.emit_attention import chunk_room, most_chunks
from halfbyte.model.program import Attention
from tests.gpu_offload.attention_cases import KINDS, PAIRS, PLAIN, TYPES, attend, attention_stage, store, tokens
from tests.gpu_offload.kv_stage import distance, random_values
from tests.gpu_offload.planes import from_planes
from tests.model.batches import step

# Relative L2, measured: 4.3e-7 at most, where a product of many halves is summed as floats are.
BUDGET = 3e-6


@pytest.mark.parametrize("pair", PAIRS, ids=" in ".join)
def test_near_the_reference(device, pair):
    rng = np.random.default_rng(5)
    stage = attention_stage(device, rng, **KINDS[pair[0]], types=TYPES[pair[1]])
    store(stage, rng, tokens({0: (0, 69), 2: (0, 17)}))
    batch = step([([1], 69, [3, 7, 1, 0, 10]), ([1] * 3, 0, [6]), ([1] * 2, 17, [4, 9])], 16)
    found, expected = attend(stage, rng, batch, bucket=8)
    assert distance(found, expected) < BUDGET


COMPANY = {
    "alone": [0],
    "behind another": [2, 0],
    "before others": [0, 1, 2],
}


@pytest.mark.parametrize("kind", ["plain", "sinks, window and soft cap", "whole units"])
def test_same_bits_in_any_company_and_on_any_grid(device, kind):
    """A token's bits are the same whatever sequences stand beside it, and however many blocks share the work."""
    rng = np.random.default_rng(7)
    stage = attention_stage(device, rng, **KINDS[kind])
    store(stage, rng, tokens({0: (0, 75)}))
    widths = {name: stage.program.widths[name] for name in "qkv"}
    own = random_values(rng, tokens({0: (75, 1)}), widths)
    seen = []
    for others in COMPANY.values():
        for stage.multiprocessors in (1, 5):
            starts = {s: (75, 1) if s == 0 else (0, 3) for s in others}
            batch = tokens(starts)
            at = others.index(0) * 3
            values = random_values(rng, batch, widths)
            for name, x in values.items():
                x[at] = own[name][0]
            seen.append(stage.run(batch, values, bucket=16)["o"][at])
    for other in seen[1:]:
        np.testing.assert_array_equal(seen[0], other)


def test_a_token_has_the_bits_of_a_step_of_its_own(device):
    rng = np.random.default_rng(8)
    stage = attention_stage(device, rng, **PLAIN)
    batch = tokens({0: (0, 16)})
    values = random_values(rng, batch, {name: stage.program.widths[name] for name in "qkv"})
    together = stage.run(batch, values)["o"]
    for t in range(16):
        one = {name: x[t : t + 1] for name, x in values.items()}
        np.testing.assert_array_equal(stage.run(tokens({0: (t, 1)}), one)["o"][0], together[t])


def test_counts_are_zero_again(device):
    """The same memory serves step after step, and layer after layer."""
    rng = np.random.default_rng(9)
    stage = attention_stage(device, rng, **PLAIN)
    store(stage, rng, tokens({0: (0, 70)}))
    batch = tokens({0: (70, 3)})
    for _ in range(3):
        found, expected = attend(stage, rng, batch)
        assert distance(found, expected) < BUDGET


def chunks(visible, end, most):
    """What `seen_by` in attention_work.cuh does."""
    length = 64
    while length * most < visible:
        length *= 2
    return (end - 1) // length - (end - visible) // length + 1


@pytest.mark.parametrize("most", [32, 64])
@pytest.mark.parametrize("window", [None, 1, 100, 4096])
def test_there_is_room_for_all_chunks(most, window):
    op = Attention("q", "o", 0, 8, 8, 64, 64, 1.0, window)
    for context in (1, 64, 65, 1000, 5000, 40000):
        room = chunk_room(op, most, context)
        ends = range(1, context + 1, 1 if context < 2000 else 37)
        assert max(chunks(min(end, window or end), end, most) for end in ends) <= room
        assert room <= most + 2
        assert room % 2 == 0


def test_few_groups_make_more_chunks():
    assert most_chunks(1) > most_chunks(8)


UNITS = {
    "of whole units": {"heads": 8, "kv_heads": 1, "value_size": 64},
    "of a part of one": {"heads": 6, "kv_heads": 3, "value_size": 44},
}


@pytest.mark.parametrize("product", ["bytes", "halves"])
@pytest.mark.parametrize("groups", UNITS)
def test_other_forms_are_made_along(device, groups, product):
    """Planes by each group of heads where they are whole units, else by the last group of a token to be done."""
    rng = np.random.default_rng(10)
    stage = attention_stage(device, rng, **PLAIN | UNITS[groups], product=product)
    store(stage, rng, tokens({0: (0, 70)}))
    batch = tokens({0: (70, 2), 1: (0, 3)})
    values = random_values(rng, batch, {name: stage.program.widths[name] for name in "qkv"})
    assert [call.writes for call in stage.lowered(stage.ops[1:], False)] == [("o",)]
    found, expected = stage.run(batch, values), stage.expected(batch, values)["o"]
    width, count = expected.shape[1], len(batch.ids)
    if product == "bytes":
        made, untouched = from_planes(found["o", "planes"], found["o", "records"], width)
        assert untouched[count:].all()
        assert (made[:count, width:] == 0).all()
        assert distance(made[:count, :width], expected) < 1e-4
    else:
        halves = found["o", "halves"].view(np.float16).reshape(-1, width).astype(np.float32)
        scales = found["o", "half_scales"].view(np.float32)
        assert distance((halves * scales[:, None])[:count], expected) < 1e-3


@pytest.mark.parametrize("kind", ["plain", "window of 40", "as many kv heads"])
def test_same_bits_however_many_chunks_a_block_takes(device, kind):
    """From one block for all of it to a block a chunk."""
    rng = np.random.default_rng(11)
    stage = attention_stage(device, rng, **KINDS[kind])
    pages = [3, 7, 1, 0, 10, 6, 2, 4, 9, 5, 8, 11]
    store(stage, rng, step([([1] * 186, 0, pages)], 16))
    batch = step([([1] * 4, 186, pages)], 16)
    values = random_values(rng, batch, {name: stage.program.widths[name] for name in "qkv"})
    expected, seen = stage.expected(batch, values)["o"], []
    for stage.multiprocessors in (1, 2, 3, 40):
        seen.append(stage.run(batch, values, bucket=12)["o"])
        np.testing.assert_array_equal(seen[0], seen[-1])
    assert distance(seen[0], expected) < BUDGET
