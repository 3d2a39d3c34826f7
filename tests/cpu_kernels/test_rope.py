"""Rotary embedding far from the start, where an angle has few bits to spare."""

import numpy as np
import pytest

from halfbyte.model.program import Rope, RopeTable, StepBatch
from tests.cpu_kernels.op_programs import SHOW, SIZE, build, on_table, reference
from tests.cpu_kernels.products import batch_of

POSITIONS = np.array([0, 1, 2, 3, 17, 1000, 4095, 32768, 99_991, 100_000, 131_071, 1_000_000], np.int32)
HEADS = 3  # of 111 channels


def turned(runner):
    batch = batch_of(np.arange(len(POSITIONS)))
    batch = StepBatch(
        batch.ids, POSITIONS, batch.seq_of, batch.slots, batch.page_table, batch.seq_len, batch.logit_rows
    )
    logits = np.full((len(POSITIONS), SIZE), np.nan, np.float32)
    runner.run(batch, logits)
    return logits


@pytest.mark.parametrize("pairs", [55, 20, 1])
@pytest.mark.parametrize("kind", ["norm", "neox"])
@pytest.mark.parametrize("threads", [1, 2])
def test_angles_are_exact_up_to_a_million(kind, pairs, threads, rng):
    table = RopeTable(kind, tuple(10000.0 ** -(np.arange(pairs) / pairs)), 1.25)
    program, weights = on_table(rng.uniform(-1, 1, (SIZE, SIZE)), Rope("x", "y", HEADS, table), *SHOW)
    runner = build(program, weights, threads=threads)
    result = turned(runner)
    runner.close()
    # Measured: 2.4e-7, the rounding of two products and a sum. A frequency in single precision would make 3e-3.
    assert np.abs(result - turned(reference(program, weights))).max() < 1e-6
