"""Where attention keeps what in a thread's scratch, and the operands of its instruction."""

from __future__ import annotations

import numpy as np

from .instruction import LAYOUTS, ROWS, RUN, RUN_WIDE, TILE_RECORDS
from .instruction import state as word
from .jit import helper
from .memory import load_float, load_i32, load_i64

(
    Q, KEYS, VALUES, OUT, HEADS, KV_HEADS, KEY_SIZE, VALUE_SIZE, SCALE, SOFTCAP, WINDOW, Q_STRIDE, OUT_STRIDE, SCRATCH,
    SCRATCH_BYTES, PARTIALS, KEY_BYTES, VALUE_BYTES, SINKS, AHEAD,
) = LAYOUTS["attention"].offsets()  # fmt: skip
SUMS = 64
"""Offset of the first row's record in a set of records: behind the rows' largest scores."""
SHARE = 64
"""Offset of a row's share of the values in its record: behind 16 sums of weights."""
POSITIONS, SEQ_OF, SEQ_LEN = word("positions"), word("seq_of"), word("seq_len")
LOG2_E, NO_SINK = np.float32(1.44269504), np.float32(-1e30)


@helper
def end_of(instr, state, token):
    """The position behind the last that a token sees."""
    if load_i64(instr + AHEAD) != 0:
        return load_i32(load_i64(state + SEQ_LEN) + 4 * load_i32(load_i64(state + SEQ_OF) + 4 * token))
    return load_i32(load_i64(state + POSITIONS) + 4 * token) + 1


@helper
def sink_of(instr, head):
    """A head's sink in powers of two."""
    sinks = load_i64(instr + SINKS)
    return NO_SINK if sinks == 0 else load_float(sinks + 4 * head) * LOG2_E


@helper
def padded(size):
    """Channels of a value as kept here: whole vectors."""
    return (size + 15) // 16 * 16


@helper
def whole_pairs(size):
    """Channels of a key as kept here: some types come in pairs."""
    return (size + 1) // 2 * 2


@helper
def record_bytes(instr):
    """Bytes of a row's record."""
    return SHARE + 4 * padded(load_i64(instr + VALUE_SIZE))


@helper
def set_bytes(instr):
    """Bytes of the records of a tile."""
    return SUMS + ROWS * record_bytes(instr)


@helper
def queries(instr, tile):
    """Where the staged queries of a tile lie."""
    return tile + TILE_RECORDS + 2 * set_bytes(instr)


@helper
def tile_bytes(instr):
    """Bytes of a tile."""
    return TILE_RECORDS + 2 * set_bytes(instr) + 4 * ROWS * whole_pairs(load_i64(instr + KEY_SIZE))


@helper
def wide_keys(scratch):
    """Where the keys of a run lie as float32: of each channel 64."""
    return scratch + RUN_WIDE


@helper
def wide_values(instr, scratch):
    """Where the values of a run lie as float32, one behind the other."""
    return wide_keys(scratch) + 4 * RUN * whole_pairs(load_i64(instr + KEY_SIZE))


@helper
def first_tile(instr, scratch):
    """Where the first tile lies."""
    return wide_values(instr, scratch) + 4 * RUN * padded(load_i64(instr + VALUE_SIZE))
