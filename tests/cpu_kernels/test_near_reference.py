"""Whole programs against the NumPy reference, every architecture and format.

Keys and values are halves. Wherever one of them lies near the middle between two, another order of a sum tips it, and
what follows is moved by a whole step: the reference itself, in chunks of one token, is up to 1.5e-4 away from the
reference in one piece. Where nothing tips, float32 programs agree to 5e-7, which sequences of one token show.
"""

import numpy as np
import pytest

from halfbyte.formats import open_gguf
from halfbyte.model import bind
from halfbyte.model.kv_types import KvTypes
from halfbyte.model.reference import ReferenceExecutable
from tests.cpu_kernels.kernel_sets import DETECTED, ISAS_HERE
from tests.cpu_kernels.programs import (
    ARCHS,
    IDS,
    LENGTH,
    MIXED,
    N_PAGES,
    PAGE_LEN,
    VOCAB,
    build,
    distance,
    logits_of,
    poison,
    reference_logits,
    rounding_logits,
)
from tests.model.batches import run_all, step
from tests.model.tiny import make_tiny_gguf

# Relative L2 error of all logits, largest of the architectures, with 16-bit activations. Measured against a reference
# that rounds activations alike: 1.0e-4 (q4_0) 1.6e-4 (q4_1) 1.4e-4 (q5_0) 8e-5 (q5_1) 1.5e-4 (q8_0) 6e-5 (q4_k)
# 7e-5 (q5_k) 1.6e-4 (q6_k) 1.9e-4 (q2_k) 1.5e-4 (iq4_xs) 1.5e-4 (mixed); against one that does not round: 2.3e-4
# 2.0e-4 2.6e-4 2.6e-4 2.8e-4 1.5e-4 2.4e-4 3.1e-4 2.1e-4 2.5e-4 3.0e-4. Float weights: 1.2e-4 (bf16).
FORMATS = ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q4_k", "q5_k", "q6_k", "q2_k", "iq4_xs", "mixed")
SAME, EXACT, FLOATS = 8e-4, 1.5e-3, 6e-4
FLOATS_UNTIPPED = 2.5e-6
FEW = {"weights": "q4_1", "formats": {"attn_v": "q8_0", "ffn_down": "q6_k", "output": "f16"}}


@pytest.fixture
def model(tmp_path):
    def make(arch, **choices):
        return bind(open_gguf(make_tiny_gguf(tmp_path / "model.gguf", arch, **choices)))

    return make


def kernel_logits(model, isa_name=DETECTED, threads=1, chunks=(LENGTH,)):
    runner = build(model, isa_name=isa_name, threads=threads)
    poison(runner)
    logits = logits_of(runner, chunks)
    runner.close()
    return logits


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("weights", ["f32", "f16", "bf16"])
def test_float_weights(model, arch, weights):
    made = model(arch, weights=weights)
    assert distance(kernel_logits(made), reference_logits(made)) < FLOATS


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("weights", ["f32", "bf16"])
def test_float_weights_where_no_key_or_value_is_tipped(model, arch, weights):
    made = model(arch, weights=weights)
    tokens = [[([id], 0, [page]) for page, id in enumerate(IDS[i : i + N_PAGES])] for i in range(0, 60, N_PAGES)]
    batches = [step(sequences, PAGE_LEN) for sequences in tokens]
    runner = build(made)
    logits = run_all(runner, batches, VOCAB)
    runner.close()
    reference = run_all(ReferenceExecutable(made.program, made.weights, n_pages=N_PAGES), batches, VOCAB)
    errors = [distance(*pair) for pair in zip(logits, reference, strict=True)]
    assert np.median(errors) < FLOATS_UNTIPPED


@pytest.mark.parametrize("arch", ARCHS)
def test_float_weights_and_a_store_of_floats(model, arch):
    """Nothing tips anywhere: what is compared with another program should be run so."""
    made, floats = model(arch, weights="f32"), KvTypes("f32", "f32")
    runner = build(made, threads=2, kv=floats)
    poison(runner)
    logits = logits_of(runner, [20, 1, 33])
    runner.close()
    reference = ReferenceExecutable(made.program, made.weights, n_pages=N_PAGES, kv=floats)
    assert distance(logits, logits_of(reference)) < FLOATS_UNTIPPED


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("weights", FORMATS)
def test_quantized_weights(model, arch, weights, monkeypatch):
    made = model(arch, **(MIXED if weights == "mixed" else {"weights": weights}))
    logits = kernel_logits(made)
    assert distance(logits, rounding_logits(made, monkeypatch)) < SAME
    assert distance(logits, reference_logits(made)) < EXACT


@pytest.mark.parametrize("isa_name", ISAS_HERE)
def test_every_instruction_set(model, isa_name, monkeypatch):
    made = model("llama", **FEW)
    logits = kernel_logits(made, isa_name)
    assert distance(logits, rounding_logits(made, monkeypatch)) < SAME
    assert np.array_equal(kernel_logits(made, isa_name, threads=2, chunks=[1, 20, 8, 33, 8]), logits)


@pytest.mark.parametrize(
    "sizes", [{"n_embd": 96, "head_size": 20}, {"n_head": 7, "n_head_kv": 1, "head_size": 12}], ids=str
)
@pytest.mark.parametrize("arch", ARCHS)
def test_sizes_that_fill_no_vector(model, arch, sizes):
    made = model(arch, **sizes, n_ff=100)
    assert distance(kernel_logits(made), reference_logits(made)) < FLOATS
    assert np.array_equal(kernel_logits(made, threads=2, chunks=[5, 17, 3]), kernel_logits(made))
