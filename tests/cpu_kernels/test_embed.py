"""Rows of the embedding table, read from the file's bytes where a format has a kernel for it."""

import numpy as np
import pytest

from halfbyte.cpu_kernels import executable
from halfbyte.model.program import Embed, Linear, Program, TakeRows
from halfbyte.quant import FORMATS
from tests.cpu_kernels.kernel_sets import DETECTED, ready
from tests.cpu_kernels.products import batch_of, f32_weight, named, random_weight

VOCAB, WIDTH = 256, 256
IDS = [255, 0, 17, 17, 3, 254, 128]


def embedded(table, scale, threads=1):
    """f32[7, WIDTH], shown by a product with the unit matrix."""
    ops = (Embed("table", "x", scale), TakeRows("x", "asked"), Linear("asked", "one", "y"))
    program = Program(ops, {"x": WIDTH, "asked": WIDTH, "y": VOCAB}, (), "y", VOCAB)
    weights = named({"table": table, "one": f32_weight(np.eye(WIDTH))})
    ready()
    sizes = {"n_pages": 1, "max_tokens": len(IDS)}
    runner = executable.build(program, weights, **sizes, threads=threads, isa=DETECTED)
    logits = np.full((len(IDS), VOCAB), np.nan, np.float32)
    runner.run(batch_of(IDS), logits)
    runner.close()
    return logits


@pytest.mark.parametrize("scale", [1.0, 25.298221])
@pytest.mark.parametrize("name", list(FORMATS))
def test_rows_are_the_files_to_the_bit(name, scale):
    table = random_weight(name, VOCAB, WIDTH)
    rows = embedded(table, scale)
    assert np.array_equal(rows, table.decode()[IDS] * np.float32(scale))
    assert np.array_equal(embedded(table, scale, threads=3), rows)
