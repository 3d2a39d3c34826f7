"""Writing results: the end of a matrix product, with bias and residual, and the last vector of a row."""

from __future__ import annotations

from .instruction import LAYOUTS
from .jit import helper
from .memory import load_i64, store_float
from .ops import lane, load_f32, store_f32, store_first
from .tiles import add_loaded, add_to_all, store_tile

*_, ROWS, PER_TILE, BIAS, RESIDUAL, RESIDUAL_STRIDE, OUT, OUT_STRIDE, SCRATCH, SCRATCH_BYTES, PEAKS = LAYOUTS[
    "linear"
].offsets()


@helper
def store_part(address, v, left):
    """Store a vector, or the `left` lanes of it that a row still has: rows of logits stand side by side."""
    if left >= 16:
        store_f32(address, v)
    else:
        store_first(address, v, left)


@helper
def store_result(instr, acc, row, token):
    """Add bias and residual and write 16 rows of a tile; of the last row tile only the rows that exist."""
    bias, residual, stride = load_i64(instr + BIAS), load_i64(instr + RESIDUAL), load_i64(instr + OUT_STRIDE)
    if bias != 0:
        acc = add_to_all(acc, load_f32(bias + 4 * row))
    if residual != 0:
        step = load_i64(instr + RESIDUAL_STRIDE)
        acc = add_loaded(acc, residual + token * step + 4 * row, step)
    out = load_i64(instr + OUT) + token * stride + 4 * row
    left = load_i64(instr + ROWS) - row
    if left >= 16:
        store_tile(acc, out, stride)
    else:
        for v in acc:
            for i in range(left):
                store_float(out + 4 * i, lane(v, i))
            out += stride
