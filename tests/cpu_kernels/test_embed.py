"""Rows of embedding tables, by id and by position, read from the file's bytes where a format has a kernel for it."""

from dataclasses import replace

import numpy as np
import pytest

from halfbyte.cpu_kernels import executable
from halfbyte.model.program import Add, Embed, EmbedPositions, Linear, Program, TakeRows
from halfbyte.quant import FORMATS
from tests.cpu_kernels.kernel_sets import DETECTED, ready
from tests.cpu_kernels.products import batch_of, f32_weight, named, random_weight

VOCAB, WIDTH = 256, 256
IDS = [255, 0, 17, 17, 3, 254, 128]


def embedded(table, scale, threads=1):
    """f32[7, WIDTH] by id, shown by a product with the unit matrix."""
    ops = (Embed("table", "x", scale), TakeRows("x", "asked"), Linear("asked", "one", "y"))
    return rows_of(ops, {"table": table}, batch_of(IDS), threads)


def by_position(words, table, threads=1):
    """f32[7, WIDTH] of the sums of a word's row and that of its position."""
    ops = (Embed("words", "w"), EmbedPositions("table", "p", VOCAB), Add("w", "p", "x"))
    ops += (TakeRows("x", "asked"), Linear("asked", "one", "y"))
    batch = replace(batch_of([5] * len(IDS)), positions=np.array(IDS, np.int32))
    return rows_of(ops, {"words": words, "table": table}, batch, threads)


def rows_of(ops, tables, batch, threads):
    program = Program(ops, {name: WIDTH for op in ops for name in op.writes()}, (), "y", VOCAB)
    weights = named(tables | {"one": f32_weight(np.eye(WIDTH))})
    ready()
    sizes = {"n_pages": 1, "max_tokens": len(IDS)}
    runner = executable.build(program, weights, **sizes, threads=threads, isa=DETECTED)
    logits = np.full((len(IDS), VOCAB), np.nan, np.float32)
    runner.run(batch, logits)
    runner.close()
    return logits


@pytest.mark.parametrize("scale", [1.0, 25.298221])
@pytest.mark.parametrize("name", list(FORMATS))
def test_rows_are_the_files_to_the_bit(name, scale):
    table = random_weight(name, VOCAB, WIDTH)
    rows = embedded(table, scale)
    assert np.array_equal(rows, table.decode()[IDS] * np.float32(scale))
    assert np.array_equal(embedded(table, scale, threads=3), rows)


@pytest.mark.parametrize("words", ["f16", "f64"])
@pytest.mark.parametrize("name", list(FORMATS))
def test_rows_by_position_are_the_files_to_the_bit(name, words):
    """Whether kernels know the formats of the two tables or the caller decodes them."""
    table, words = random_weight(name, VOCAB, WIDTH), random_weight(words, VOCAB, WIDTH)
    rows = by_position(words, table)
    assert np.array_equal(rows, words.decode()[[5]] + table.decode()[IDS])
    assert np.array_equal(by_position(words, table, threads=3), rows)
