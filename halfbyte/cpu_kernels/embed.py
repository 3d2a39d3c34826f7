"""Rows of a table by id or by position, decoded from the file's own bytes: the table is never packed for this.

A row is packed as if it were the first of sixteen and unpacked as in any product, so what a format's bytes mean is
written down once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..quant import FORMATS
from . import formats, ops
from .instruction import LAYOUTS
from .instruction import state as word
from .jit import helper
from .memory import bits_to_float, load_byte, load_i32, load_i64, store_float
from .ops import lane, mul, same, store_f32
from .pack import block_of
from .packed import EMBED_SCRATCH, FAMILY_OF, PACKED, ROWS
from .tiles import store_chunks

TABLE, ROW_BYTES, COLUMNS, INDEX, SCALE, OUT, STRIDE, SCRATCH, SCRATCH_BYTES = LAYOUTS["embed"].offsets()
TOKENS = word("tokens")


@helper
def _first_row(out, chunks, scales, halves, scratch, factor):
    """The first row's 32 values of a group."""
    store_chunks(scratch, chunks)
    for column in range(32):
        byte = np.float32(load_byte(scratch + 16 * ROWS // 4 * (column // 4) + column % 4))
        pair = 2 * (column // 16) * halves
        value = lane(scales[pair], 0) * byte + lane(scales[pair + 1], 0)
        store_float(out + 4 * column, value * factor)


def _quantized_row(name: str) -> Any:
    family, block = PACKED[FAMILY_OF[name]], block_of(name)
    chunks, scales = formats.unpackers(FAMILY_OF[name])
    groups, step_bytes, halves = family.columns // 32, family.step_bytes, int(family.halves)

    @helper
    def row(source, columns, out, scratch, factor):
        tile = scratch + 32 * ROWS
        for _ in range(columns // (32 * groups)):
            source += block(tile, source, 0)
            for group in range(groups):
                _first_row(out, chunks(tile, group), scales(tile, group), halves, scratch, factor)
                out += 128

    assert step_bytes + 32 * ROWS <= EMBED_SCRATCH
    return row


def _float_row(name: str) -> Any:
    block, column, load = block_of(name), getattr(formats, f"{name}_column"), getattr(ops, f"load_{name}")
    n_bytes = FORMATS[name].block_bytes

    @helper
    def row(source, columns, out, scratch, factor):
        for _ in range(columns // 16):
            store_f32(out, mul(load(source), same(factor)))
            source, out = source + 16 * n_bytes, out + 64
        for _ in range(columns % 16):  # the file may end behind them
            source += block(scratch, source, 0)
            store_float(out, lane(column(scratch), 0) * factor)
            out += 4

    return row


def _kernel(name: str) -> Callable[..., None]:
    row = _quantized_row(name) if PACKED[FAMILY_OF[name]].quantized else _float_row(name)

    def embed(instr, state, tid, nth):
        columns, factor = load_i64(instr + COLUMNS), bits_to_float(load_i64(instr + SCALE))
        scratch = load_i64(instr + SCRATCH) + tid * load_i64(instr + SCRATCH_BYTES)
        rows = load_i64(state + load_i64(instr + INDEX))
        for token in range(tid, load_i64(state + TOKENS), nth):
            source = load_i32(rows + 4 * token) * load_i64(instr + ROW_BYTES)
            out = load_i64(instr + OUT) + token * load_i64(instr + STRIDE)
            row(load_i64(instr + TABLE) + source, columns, out, scratch, factor)

    return embed


KERNELS = {f"embed_{name}": _kernel(name) for name in FAMILY_OF}
