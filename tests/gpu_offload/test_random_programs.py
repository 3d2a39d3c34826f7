"""Programs no architecture would write: whatever ops follow each other, the answer is the reference's."""

import numpy as np
import pytest

from halfbyte.gpu_offload import assembly, executable
from halfbyte.model.backend import Stage
from halfbyte.model.pieces import cut
from halfbyte.model.reference import ReferenceExecutable
from halfbyte.runtime.hybrid import HybridExecutable
from tests.cpu_kernels.products import named
from tests.cpu_kernels.programs import distance
from tests.cpu_kernels.test_random_programs import ROWS, random_program, random_weights
from tests.model.batches import run_all, step
from tests.model.shares import random_places, reference_of

# Relative L2 against the reference, which rounds nothing. Measured: 2e-4 and 3.4e-3 at most.
BYTES, HALVES = 7e-4, 1e-2
IDS = np.arange(ROWS)
SIZES = {"n_pages": ROWS, "max_tokens": ROWS, "max_seqs": ROWS, "context": 64}


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
    runner = executable.build(program, [Stage(0, len(program.ops))], named(weights), device=device, **SIZES)
    batch = alone() if products == "bytes" else step([(IDS, 0, [2, 1, 0])], 16)
    logits = run_all(runner, [batch], ROWS)
    if products == "bytes":  # and they are the same bits in other company
        few = run_all(runner, [step([([i], i, [0]) for i in range(3)], 16)], ROWS)
        assert np.array_equal(few, logits[:3])
    runner.close()
    expected = run_all(ReferenceExecutable(program, weights, n_pages=ROWS), [batch], ROWS)
    assert distance(logits, expected) < (BYTES if products == "bytes" else HALVES)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("products", ["bytes", "halves"])
def test_random_shares_of_them(device, seed, products, monkeypatch):
    """Stages of it in turns with another backend, which takes whatever it is asked for."""
    monkeypatch.setattr(assembly, "BYTES_PROMPT", 0)
    rng = np.random.default_rng(seed)
    program = random_program(rng)
    weights = random_weights(program, rng)
    pieces = cut(program, random_places(program, rng))
    sides = {place: reference_of(share, weights, ROWS) for place, share in pieces.shares.items()}
    if "gpu" in sides:
        own = pieces.shares["gpu"]
        read = {name: weight for name, weight in named(weights).items() if name in own.program.weight_names()}
        sides["gpu"] = executable.build(own.program, own.stages, read, device=device, **SIZES)
    runner = HybridExecutable(pieces, sides, next(iter(sides.values())))
    batches = [alone(), step([([5, 9], 0, [3])], 16)] if products == "bytes" else [step([(IDS, 0, [2, 1, 0])], 16)]
    logits = run_all(runner, batches, ROWS)
    runner.close()
    expected = run_all(ReferenceExecutable(program, weights, n_pages=ROWS), batches, ROWS)
    assert distance(logits, expected) < (BYTES if products == "bytes" else HALVES)
