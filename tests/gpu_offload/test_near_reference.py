"""Whole models on a device against the NumPy reference: every architecture and format, few new tokens and many.

Steps with few new tokens multiply bytes, those of long prompts halves, whose 11 bits show in the last figures. In both,
keys and values are halves, and where one of them is tipped by another order of a sum, it moves by a whole step.
"""

import numpy as np
import pytest

from halfbyte.formats import open_gguf
from halfbyte.gpu_offload.assembly import BYTES_PROMPT
from halfbyte.gpu_offload.families import FAMILIES
from halfbyte.model import bind
from halfbyte.model.kv_types import KvTypes
from halfbyte.model.reference import ReferenceExecutable
from tests.cpu_kernels.programs import IDS, LENGTH, N_PAGES, PAGE_LEN, VOCAB, distance, logits_of, reference_logits
from tests.gpu_offload.emulated.device import EmulatedDevice
from tests.gpu_offload.programs import build
from tests.model.batches import run_all, run_side_by_side, step, whole_prompt_batches
from tests.model.tiny import make_tiny_gguf
from tests.model.tiny_traits import ENCODERS, TRAITS

DECODERS = [arch for arch in TRAITS if arch not in ENCODERS]
# Relative L2 error of all logits. Measured, the largest of the architectures and formats: 5.9e-4 with bytes (tq1_0), in
# long prompts 2.1e-3 (q1_0), with plain floats 4.0e-3 (gpt-oss).
BYTES, HALVES = 1.5e-3, 8e-3
STEMS = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down", "output")
TURNS = (7, 1, 3, 30)
"""Steps of which most have few new tokens."""


@pytest.fixture
def model(tmp_path):
    def make(arch, **choices):
        return bind(open_gguf(make_tiny_gguf(tmp_path / "model.gguf", arch, **choices)))

    return make


def check(device, made):
    """A prompt in one step, which multiplies halves, and in parts."""
    assert LENGTH > BYTES_PROMPT
    reference = reference_logits(made)
    runner = build(device, made)
    errors = distance(logits_of(runner), reference), distance(logits_of(runner, TURNS), reference)
    runner.close()
    assert errors[0] < HALVES
    assert errors[1] < BYTES


@pytest.mark.parametrize("arch", DECODERS)
def test_every_architecture(device, model, arch):
    # With seed 0 a score of an expert is so near another's that rounding chooses between them.
    check(device, model(arch, weights="q8_0", seed=1, n_layers=2))


@pytest.mark.parametrize("first", range(0, len(FAMILIES), len(STEMS)))
def test_every_format(device, model, first):
    """Each in a matrix of its own, a few tokens at a time, whose kernels are the ones that differ by format."""
    formats = dict(zip(STEMS, list(FAMILIES)[first:], strict=False))
    made = model("llama", weights="q8_0", formats=formats, n_embd=256, n_layers=1)
    batches = list(whole_prompt_batches(IDS[:10], PAGE_LEN, [4]))
    runner = build(device, made, max_tokens=4)
    logits = run_all(runner, batches, VOCAB)
    runner.close()
    reference = run_all(ReferenceExecutable(made.program, made.weights, n_pages=N_PAGES), batches, VOCAB)
    assert distance(logits, reference) < BYTES


def test_prompts_of_large_blocks(device, model):
    check(device, model("llama", weights="q4_k", n_layers=1))


@pytest.mark.parametrize("arch", ["llama", "gpt-oss", "lfm2"])
def test_plain_floats_and_a_store_of_floats(device, model, arch):
    """Nothing tips and nothing is rounded: few tokens are as near as sums in another order can be."""
    made, floats = model(arch, weights="f32", n_layers=2), KvTypes("f32", "f32")
    runner = build(device, made, kv=floats)
    logits = logits_of(runner, [16, 1, 4])
    runner.close()
    reference = ReferenceExecutable(made.program, made.weights, n_pages=N_PAGES, kv=floats)
    assert distance(logits, logits_of(reference)) < 5e-6


@pytest.mark.parametrize("arch", ENCODERS)
def test_encoders(device, model, arch):
    """Two texts at once, each whole."""
    made = model(arch, weights="q8_0")
    batch = step([(IDS[:50], 0, [0, 1, 2, 3]), (IDS[50:69], 0, [9, 5])], PAGE_LEN)
    runner = build(device, made)
    states = run_all(runner, [batch], made.program.widths[made.program.logits])
    runner.close()
    reference = ReferenceExecutable(made.program, made.weights, n_pages=N_PAGES)
    assert distance(states, run_all(reference, [batch], states.shape[1])) < HALVES


def test_sequences_side_by_side(device, model):
    """In some steps one has many new tokens and others few."""
    made = model("gemma3", weights="q8_0")
    prompts, chunks = [IDS[:40], IDS[5:30], IDS[::2]], (30, 4, 17)
    runner = build(device, made)
    found = run_side_by_side(runner, prompts, VOCAB, chunks)
    runner.close()
    reference = ReferenceExecutable(made.program, made.weights, n_pages=N_PAGES)
    for prompt, logits in zip(prompts, found, strict=True):
        expected = run_all(reference, whole_prompt_batches(prompt, PAGE_LEN, [len(prompt)]), VOCAB)
        assert distance(logits, expected) < BYTES


def test_few_rows_are_asked_for(device, model):
    """None of one step, and one twice."""
    made = model("llama", weights="q8_0")
    runner = build(device, made)
    pages = [4, 3, 2, 1, 0]
    parts = [(IDS[:60], 0, []), (IDS[60:65], 60, []), (IDS[65:70], 65, [4, 1, 4])]
    batches = [step([(ids, start, pages)], PAGE_LEN, rows) for ids, start, rows in parts]
    logits = run_all(runner, batches, VOCAB)
    runner.close()
    assert distance(logits, reference_logits(made)[[69, 66, 69]]) < HALVES
    assert np.array_equal(logits[0], logits[2])


@pytest.mark.parametrize("order", [1, 5])
def test_whichever_thread_comes_first(emulated, model, order):
    """Backwards, and in a random order: every bit is the same."""
    made, found = model("gpt-oss", weights="mxfp4", n_layers=1), []
    for one in (emulated, EmulatedDevice(order=order)):
        runner = build(one, made)
        found.append(logits_of(runner, [50, 16, 1, 3]))
        runner.close()
    assert np.array_equal(*found)
