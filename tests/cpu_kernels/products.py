"""One matrix product as a program, and what it must come to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from halfbyte.cpu_kernels import executable, packed
from halfbyte.model.backend import Weight
from halfbyte.model.check import check
from halfbyte.model.program import Add, Embed, Linear, Program, StepBatch, TakeRows
from halfbyte.quant import FORMATS
from tests.cpu_kernels.kernel_sets import DETECTED, ready
from tests.quant.random_blocks import random_blocks

ROWS, COLUMNS, TOKENS = 530, 1280, 21
"""33 tiles of rows and two rows more; more columns than are unpacked at a time; tokens for every length of tile."""


def random_weight(format_name, rows, columns, seed=0):
    rng = np.random.default_rng([seed, rows, columns, *format_name.encode()])
    n_blocks = rows * columns // FORMATS[format_name].block_len
    return weight_of(format_name, random_blocks(FORMATS[format_name], n_blocks, rng), (rows, columns))


def weight_of(format_name, blocks, shape):
    return Weight(format_name, FORMATS[format_name], shape, np.ascontiguousarray(blocks).reshape(shape[0], -1))


def f32_weight(values):
    values = np.atleast_2d(np.asarray(values, np.float32))
    return weight_of("f32", values.view(np.uint8), values.shape)


def named(weights):
    """Weights under the names they are looked up by."""
    return {name: replace(weight, name=name) for name, weight in weights.items()}


def product_program(rows, columns, *, bias=False, residual=False):
    """`asked @ w.T`, with a bias, with another product of the same input added."""
    ops = [Embed("table", "x"), TakeRows("x", "asked")]
    widths = {"x": columns, "asked": columns, "y": rows}
    if residual:
        ops.append(Linear("asked", "other", "z"))
        widths |= {"z": rows, "sum": rows}
    ops.append(Linear("asked", "w", "y", "bias" if bias else None))
    if residual:
        ops.append(Add("z", "y", "sum"))
    program = Program(tuple(ops), widths, (), ops[-1].out, rows)
    check(program)
    return program


class Product:
    """`weight` times the rows of `x`, which is the embedding table; token t has the id t."""

    def __init__(self, weight, x, *, bias=None, other=None, isa_name=DETECTED, threads=1):
        ready(isa_name)
        self.rows, self.columns = weight.shape
        table = np.zeros((self.rows, self.columns), np.float32)
        table[: len(x)] = x
        weights = {"table": f32_weight(table), "w": weight}
        weights |= {"bias": f32_weight(bias)} if bias is not None else {}
        weights |= {"other": other} if other is not None else {}
        program = product_program(*weight.shape, bias=bias is not None, residual=other is not None)
        sizes = {"n_pages": 1, "max_tokens": len(x)}
        self.executable = executable.build(program, named(weights), **sizes, threads=threads, isa=isa_name)

    def __call__(self, tokens):
        """f32[len(tokens), rows], computed in one step; checks that the memory around stays as it was."""
        around = np.full((len(tokens) + 2, self.rows), np.nan, np.float32)
        self.executable.run(batch_of(tokens), around[1:-1])
        assert np.isnan(around[[0, -1]]).all()
        return around[1:-1]

    def close(self):
        self.executable.close()


def batch_of(tokens):
    ids = np.asarray(tokens, np.int32)
    none = np.zeros(len(ids), np.int32)
    table = np.zeros((1, 1), np.int32)
    return StepBatch(ids, none, none, none, table, none[:1], np.arange(len(ids), dtype=np.int32))


LARGEST = 127 * 256
"""What the largest magnitude of a group of activations becomes."""


def rounded(x):
    """Activations as kernels round them: whole multiples of a scale for each group of 32; f32[T, M]."""
    groups = np.asarray(x, np.float32).reshape(len(x), -1, 32)
    peak = np.abs(groups).max(axis=2, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = np.where(peak > 0, np.float32(LARGEST) / peak, np.float32(0))
    return (np.rint(groups * inverse) * (peak / np.float32(LARGEST))).reshape(x.shape)


def takes_rounded(weight):
    family = packed.family_of(weight.format.name)
    return packed.PACKED[family].quantized and weight.shape[1] % packed.PACKED[family].columns == 0


def expected(weight, x):
    """f64[T, N]: the product of what the kernel is given, rounded activations included."""
    given = rounded(x) if takes_rounded(weight) else x
    return given.astype(np.float64) @ weight.decode().astype(np.float64).T
