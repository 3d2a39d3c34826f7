"""Products with the matrix of each row's expert: for each expert that has rows, an instruction of `linear.py`.

Threads claim runs of row tiles across the matrices of all these experts, so a single token keeps them as busy as one
large matrix would, and every row is multiplied as `Linear` multiplies it.
"""

from __future__ import annotations

from collections.abc import Callable

from .claim import claim
from .dealing import ACTIVE, MOST, RECORD, RECORDS
from .instruction import BYTES, LAYOUTS
from .jit import helper
from .linear import product
from .memory import load_i64, room_of_256, store_i64
from .packed import PACKED
from .result import BIAS, OUT, OUT_STRIDE, ROWS

COUNT, WEIGHTS, X, SUMS, X_STRIDE, *_, ORDER, EXPERT_BYTES = LAYOUTS["experts"].offsets()
assert LAYOUTS["experts"].names[:-2] == LAYOUTS["linear"].names
assert BYTES <= 256


@helper
def _copy_words(instr, own):
    for word in range(0, BYTES, 8):
        store_i64(own + word, load_i64(instr + word))


@helper
def _turn_to(instr, own, record):
    """Make `own` the instruction of an expert; returns how many rows it has."""
    expert, row = load_i64(record), load_i64(record + 8)
    stride, out_stride, bias = load_i64(instr + X_STRIDE), load_i64(instr + OUT_STRIDE), load_i64(instr + BIAS)
    store_i64(own + WEIGHTS, load_i64(instr + WEIGHTS) + expert * load_i64(instr + EXPERT_BYTES))
    store_i64(own + X, load_i64(instr + X) + row * stride)
    store_i64(own + SUMS, load_i64(instr + SUMS) + row * (stride // 4))
    store_i64(own + OUT, load_i64(instr + OUT) + row * out_stride)
    if bias != 0:
        store_i64(own + BIAS, bias + 4 * expert * load_i64(instr + ROWS))
    return load_i64(record + RECORD + 8) - row


def _kernel(name: str) -> Callable[..., None]:
    begin, gather, multiply, end = product(name)

    def experts(instr, state, tid, nth):
        own, order = room_of_256(), load_i64(instr + ORDER)
        tiles, most = (load_i64(instr + ROWS) + 15) // 16, load_i64(order + MOST)
        units = tiles * load_i64(order + ACTIVE)
        _copy_words(instr, own)
        begin(most)
        while True:
            first, last = claim(instr, units, nth)
            if first == last:
                break
            while first < last:
                place, tile = first // tiles, first % tiles
                until = min(tiles, tile + last - first)
                count = _turn_to(instr, own, order + RECORDS + RECORD * place)
                gather(own, tid, count)
                multiply(own, tid, tile, until, count)
                first += until - tile
        end(most)

    return experts


KERNELS = {f"experts_{name}": _kernel(name) for name in PACKED}
