"""Matrix kernels, one a format: `out[t] = x[t] @ weights.T (+ bias) (+ residual[t])`.

Threads take chunks of row tiles from the instruction's counter. Within a row tile its packed bytes stay in the cache
while tiles of tokens pass by: one source for vector work (a tile of one token) and matrix work.
"""

from __future__ import annotations

from collections.abc import Callable

from numba import types

from . import formats
from .instruction import COUNTER, LAYOUTS
from .jit import helper
from .lowerings import active
from .memory import atomic_add, load_i64, store_float
from .ops import lane, load_f32
from .packed import PACKED
from .tiles import add_loaded, add_to_all, prefetch, store_tile, zeros
from .vec import op

(
    COUNT, WEIGHTS, X, SUMS, X_STRIDE, COLUMNS, ROWS, PER_TILE, CHUNK, BIAS, RESIDUAL, RESIDUAL_STRIDE, OUT, OUT_STRIDE,
) = LAYOUTS["linear"].offsets()  # fmt: skip

MATRIX = (0,) * active.isa.tokens[0]
MIDDLE = (0,) * active.isa.tokens[-2]
ONE = (0,)


@op(types.void)
def enter(builder):
    """Prepare the matrix registers, where there are any."""
    if active.enter is not None:
        active.enter(builder)


@op(types.void)
def leave(builder):
    """Give the matrix registers back."""
    if active.leave is not None:
        active.leave(builder)


@helper
def _store(instr, acc, row, token):
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


@helper
def _tokens(instr, step, columns, step_bytes, element, shape, row, token, count):
    """Multiply one row tile with as many tiles of tokens as fit; returns the first token left over."""
    packed = load_i64(instr + WEIGHTS) + (row // 16) * load_i64(instr + PER_TILE)
    steps = load_i64(instr + COLUMNS) // columns
    stride = load_i64(instr + X_STRIDE)
    while token + len(shape) <= count:
        acc = zeros(shape)
        w = packed
        x = load_i64(instr + X) + token * stride
        sums = load_i64(instr + SUMS) + token * (stride // 2)
        for _ in range(steps):
            prefetch(shape, w, step_bytes)
            acc = step(acc, w, x, sums, stride)
            w += step_bytes
            x += columns * element
            sums += columns // 2
        _store(instr, acc, row, token)
        token += len(shape)
    return token


@helper
def _sweep(instr, step, columns, step_bytes, element):
    """Take row tiles until none is left."""
    count, chunk = load_i64(load_i64(instr + COUNT)), load_i64(instr + CHUNK)
    tiles = (load_i64(instr + ROWS) + 15) // 16
    if count >= len(MATRIX):
        enter()
    while True:
        tile = atomic_add(instr + COUNTER, chunk)
        if tile >= tiles:
            break
        for row in range(16 * tile, 16 * min(tile + chunk, tiles), 16):
            token = _tokens(instr, step, columns, step_bytes, element, MATRIX, row, 0, count)
            token = _tokens(instr, step, columns, step_bytes, element, MIDDLE, row, token, count)
            _tokens(instr, step, columns, step_bytes, element, ONE, row, token, count)
    if count >= len(MATRIX):
        leave()


def _kernel(name: str) -> Callable[..., None]:
    step, family = getattr(formats, name), PACKED[name]
    columns, step_bytes, element = family.columns, family.step_bytes, family.element_bytes

    def linear(instr, state, tid, nth):
        _sweep(instr, step, columns, step_bytes, element)

    return linear


KERNELS = {f"linear_{name}": _kernel(name) for name in PACKED}
