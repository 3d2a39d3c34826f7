"""What a kernel can get wrong moves logits by far more than rounding does, so logits alone tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from halfbyte.formats import open_gguf
from halfbyte.model import bind
from halfbyte.model.archs import ARCHS
from halfbyte.model.program import Attention, Rope
from halfbyte.model.reference import ReferenceExecutable
from halfbyte.runtime.golden.self_check import SelfCheck
from tests.model.batches import run_all, step
from tests.runtime.golden.files import golden_gguf


@pytest.fixture(params=["llama", "qwen2", "gemma3", "qwen3moe"])
def golden(request, tmp_path):
    assert request.param in ARCHS
    with open_gguf(golden_gguf(tmp_path / "golden.gguf", request.param, weights="q8_0")) as file:
        yield file


def failures(file, model):
    def answer(ids):
        runner = ReferenceExecutable(model.program, model.weights, n_pages=1, page_len=len(ids))
        return run_all(runner, [step([(ids, 0, [0])], len(ids))], model.program.vocab_size)

    return sum(not finding.ok for finding in SelfCheck(file).of_kernels(answer))


def with_ops(model, change):
    return replace(model, program=replace(model.program, ops=tuple(map(change, model.program.ops))))


def other_pairs(op):
    if not isinstance(op, Rope):
        return op
    return replace(op, table=replace(op.table, kind="norm" if op.table.kind == "neox" else "neox"))


def other_scale(op):
    return replace(op, scale=op.scale * 1.2) if isinstance(op, Attention) else op


def exchanged(model, one, other):
    weights = model.weights
    return replace(model, weights={**weights, one: weights[other], other: weights[one]})


def decoded_wrongly(model, name):
    """The scale of every other block is taken for half of what it is; of all, a norm behind would make up for it."""
    weight = model.weights[name]
    data = weight.data.copy().reshape(-1, weight.format.block_bytes)
    scales = data[::2, :2].copy().view(np.float16) / 2
    data[::2, :2] = scales.view(np.uint8)
    return replace(model, weights={**model.weights, name: replace(weight, data=data.reshape(weight.data.shape))})


def test_the_program_as_it_is_passes(golden):
    assert failures(golden, bind(golden)) == 0


@pytest.mark.parametrize(
    "spoil",
    [
        lambda model: with_ops(model, other_pairs),
        lambda model: with_ops(model, other_scale),
        lambda model: exchanged(model, "blk.0.attn_q.weight", "blk.1.attn_q.weight"),
        lambda model: exchanged(model, "blk.0.attn_k.weight", "blk.0.attn_v.weight"),
        lambda model: decoded_wrongly(model, "blk.1.attn_v.weight"),
    ],
    ids=["pairs of the rope", "scale of attention", "two layers", "keys and values", "scales of blocks"],
)
def test_what_is_wrong_is_noticed_at_most_tokens(golden, spoil):
    assert failures(golden, spoil(bind(golden))) > 6
