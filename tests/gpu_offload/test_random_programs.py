"""Programs no architecture would write: whatever ops follow each other, the answer is the reference's."""

import numpy as np
import pytest

from halfbyte.gpu_offload import assembly, executable
from halfbyte.model.backend import Stage
from halfbyte.model.reference import ReferenceExecutable
from tests.cpu_kernels.products import named
from tests.cpu_kernels.programs import distance
from tests.cpu_kernels.test_random_programs import ROWS, random_program, random_weights
from tests.model.batches import run_all, step

# Relative L2 against the reference, which rounds nothing. Measured: 7.2e-5 and 4.4e-4 at most.
BYTES, HALVES = 4e-4, 3e-3
IDS = np.arange(ROWS)


def build(device, program, weights):
    stages = [Stage(0, len(program.ops))]
    sizes = {"n_pages": ROWS, "max_tokens": ROWS, "max_seqs": ROWS, "context": 64}
    return executable.build(program, stages, weights, device=device, **sizes)


def alone():
    """Every token is a sequence of its own, at its own position."""
    return step([([i], i, [i] * (i // 16 + 1)) for i in IDS], 16)


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("products", ["bytes", "halves"])
def test_random_program(device, seed, products, monkeypatch):
    monkeypatch.setattr(assembly, "BYTES_PROMPT", 0)
    rng = np.random.default_rng(seed)
    program = random_program(rng)
    weights = random_weights(program, rng)
    runner = build(device, program, named(weights))
    batch = alone() if products == "bytes" else step([(IDS, 0, [2, 1, 0])], 16)
    logits = run_all(runner, [batch], ROWS)
    if products == "bytes":  # and they are the same bits in other company
        few = run_all(runner, [step([([i], i, [0]) for i in range(3)], 16)], ROWS)
        assert np.array_equal(few, logits[:3])
    runner.close()
    expected = run_all(ReferenceExecutable(program, weights, n_pages=ROWS), [batch], ROWS)
    assert distance(logits, expected) < (BYTES if products == "bytes" else HALVES)
