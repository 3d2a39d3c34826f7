"""Norms, activations and filters on every instruction set this machine has."""

import numpy as np
import pytest

from halfbyte.cpu_kernels import executable
from halfbyte.model.program import (
    Act,
    Add,
    EmbedPositions,
    GatedAct,
    KvLayer,
    KvWrite,
    LayerNorm,
    Linear,
    Mul,
    ShortConv,
    TakeRows,
)
from tests.cpu_kernels.kernel_sets import ISAS_HERE, ready
from tests.cpu_kernels.op_programs import SIZE, on_table, reference
from tests.cpu_kernels.products import f32_weight, named, weight_of
from tests.cpu_kernels.programs import PAGE_LEN, distance, poison
from tests.model.batches import run_all, whole_prompt_batches

IDS = np.arange(40) * 7
OPS = (
    EmbedPositions("table", "p", SIZE),
    Add("x", "p", "s"),
    LayerNorm("s", "weight", "n", 1e-5, "bias"),
    Act("n", "a", "gelu"),
    GatedAct("s", "n", "g", "swiglu_oai"),
    Mul("a", "g", "m"),
    KvWrite(None, "m", 0),
    ShortConv("filter", "c", 0, 3),
    TakeRows("c", "asked"),
    Linear("asked", "one", "y"),
)


@pytest.mark.parametrize("isa_name", ISAS_HERE)
def test_near_the_reference_and_equal_to_the_bit_in_any_chunks(isa_name, rng):
    layer = KvLayer(1, 0, SIZE, 3, exact=True)
    program, weights = on_table(rng.standard_normal((SIZE, SIZE)), *OPS, kv_layers=(layer,))
    weights |= {name: f32_weight(rng.standard_normal(SIZE)) for name in ("weight", "bias")}
    weights["filter"] = f32_weight(rng.standard_normal((SIZE, 3)))
    weights["one"] = weight_of("f16", np.eye(SIZE, dtype=np.float16).view(np.uint8), (SIZE, SIZE))
    expected = run_all(reference(program, weights), whole_prompt_batches(IDS, PAGE_LEN, [40]), SIZE)
    ready(isa_name)
    answers = []
    for threads, chunks in ((1, [40]), (3, [9, 1, 30])):
        sizes = {"n_pages": 3, "max_tokens": 40}
        runner = executable.build(program, named(weights), **sizes, threads=threads, isa=isa_name)
        poison(runner)
        answers.append(run_all(runner, whole_prompt_batches(IDS, PAGE_LEN, chunks), SIZE))
        runner.close()
    # Measured: 4e-6. What a filter looks back at are halves, of which some tip.
    assert distance(answers[0], expected) < 1e-4
    assert np.array_equal(answers[0], answers[1])
