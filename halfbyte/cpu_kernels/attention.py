"""Attention over pages: how the work is cut. What a row computes does not depend on it; see `attention_tile.py`.

Threads take items: some tokens under the heads of a kv head, as many rows as walk the keys together. Where that makes
too few items: fewer tokens, or a piece of the keys each; then who is last puts the pieces together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .attention_pieces import add_piece_with, partial_bytes, put_together
from .attention_places import HEADS, KV_HEADS, PARTIALS, SCRATCH, SCRATCH_BYTES, SEQ_LEN, SEQ_OF
from .attention_tile import walkers
from .instruction import COUNTER, MOST_TILES, PARTIAL_BYTES, PIECE, ROWS
from .instruction import state as word
from .jit import helper
from .kv_reading import KEY_READERS, VALUE_READERS
from .memory import atomic_add, load_i32, load_i64, store_i64

TOKENS = word("tokens")
ENOUGH = 4
"""Items for each thread: a thread that is late delays the others by a quarter of its work at most."""


@helper
def _same_sequence(state, begin, end):
    """How many of the tokens from `begin` on are of one sequence."""
    seqs, count = load_i64(state + SEQ_OF), 1
    while begin + count < end and load_i32(seqs + 4 * (begin + count)) == load_i32(seqs + 4 * begin):
        count += 1
    return count


@helper
def _most_pieces(state, tokens):
    """Pieces of the longest sequence."""
    longest, last = 0, -1
    for token in range(tokens):
        seq = load_i32(load_i64(state + SEQ_OF) + 4 * token)
        if seq != last:
            longest = max(longest, load_i32(load_i64(state + SEQ_LEN) + 4 * seq))
        last = seq
    return (longest + PIECE - 1) // PIECE


def _item_of(keys: str, values: str) -> Callable[..., Any]:
    walk_piece, attend = walkers(keys, values)
    add_piece = add_piece_with(walk_piece)

    @helper
    def item(instr, state, begin, end, head, heads, kv_head, scratch, piece, pieces, arrivals, nth):
        """The tokens `begin` to `end - 1` under some heads, or a piece of them; the last one puts all together."""
        token = begin
        while token < end:
            count = _same_sequence(state, token, end)
            if pieces == 1:
                attend(instr, state, token, count, head, heads, kv_head, scratch)
            else:
                add_piece(instr, state, token, count, head, heads, kv_head, scratch, piece, pieces, nth)
            token += count
        if pieces > 1 and atomic_add(arrivals, 1) == pieces - 1:
            store_i64(arrivals, 0)
            put_together(instr, state, begin, end, head, heads, pieces, nth)

    return item


def attention_over(keys: str, values: str) -> Callable[..., Any]:
    """The kernel for a store of some types.

    Items in order of the kv head, so that a head's keys stay near; of a sequence the longest walks first.
    """
    item = _item_of(keys, values)

    def attention(instr, state, tid, nth):
        tokens, kv_heads = load_i64(state + TOKENS), load_i64(instr + KV_HEADS)
        group, enough = load_i64(instr + HEADS) // kv_heads, ENOUGH * nth
        parts = (group + MOST_TILES * ROWS - 1) // (MOST_TILES * ROWS)
        span, most = max(1, MOST_TILES * ROWS * parts // (group + parts - 1)), _most_pieces(state, tokens)
        if tokens * load_i64(instr + HEADS) * most * partial_bytes(instr) > PARTIAL_BYTES * nth or nth == 1:
            most = 1
        while span > 1 and (tokens + span - 1) // span * kv_heads * parts * most < enough:
            span //= 2
        units = (tokens + span - 1) // span
        pieces = most if units * kv_heads * parts < enough else 1
        if units * kv_heads * parts * pieces < enough // 2:
            parts = max(parts, min(group, nth))
        scratch = load_i64(instr + SCRATCH) + tid * load_i64(instr + SCRATCH_BYTES)
        while True:
            index = atomic_add(instr + COUNTER, 1)
            if index >= units * kv_heads * parts * pieces:
                break
            piece, whole = index % pieces, index // pieces
            begin, part, kv_head = (units - 1 - whole % units) * span, whole // units % parts, whole // (units * parts)
            head, after = kv_head * group + group * part // parts, kv_head * group + group * (part + 1) // parts
            arrivals, end = load_i64(instr + PARTIALS) + 8 * whole, min(begin + span, tokens)
            item(instr, state, begin, end, head, after - head, kv_head, scratch, piece, pieces, arrivals, nth)

    return attention


KERNELS = {
    f"attention_{keys}_{values}": attention_over(keys, values) for keys in KEY_READERS for values in VALUE_READERS
}
