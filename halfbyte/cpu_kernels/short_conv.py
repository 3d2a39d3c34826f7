"""Short convolution: each channel's filter over the last values of its sequence, which pages keep token by token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .instruction import COUNTER, LAYOUTS
from .instruction import state as word
from .jit import helper
from .kv_layout import PAGE_LEN
from .memory import atomic_add, load_i32, load_i64
from .ops import add, load_f16, load_f32, mul, same
from .result import store_part

WEIGHT, VALUES, OUT, KV_HEADS, VALUE_SIZE, VALUE_BYTES, TAPS, STRIDE = LAYOUTS["conv"].offsets()
TOKENS, POSITIONS, SEQ_OF, PAGE_TABLE, MAX_PAGES = (
    word(name) for name in ("tokens", "positions", "seq_of", "page_table", "max_pages")
)
SPAN = 256
"""Channels a thread takes at a time."""


@helper
def _padded(size):
    return (size + 15) // 16 * 16


@helper
def _row(instr, state, token, head, position, value_bytes):
    """Address of the values that a token's sequence has at a position."""
    seq = load_i32(load_i64(state + SEQ_OF) + 4 * token)
    pages = load_i64(state + PAGE_TABLE) + 4 * seq * load_i64(state + MAX_PAGES)
    page = load_i32(pages + 4 * (position // PAGE_LEN)) * load_i64(instr + KV_HEADS) + head
    row = value_bytes * _padded(load_i64(instr + VALUE_SIZE)) * (position % PAGE_LEN)
    return load_i64(instr + VALUES) + page * load_i64(instr + VALUE_BYTES) + row


def _kernel(load: Callable[..., Any], value_bytes: int) -> Callable[..., None]:
    @helper
    def span(instr, state, token, head, begin, end):
        """Tap after tap, onto what the earlier ones have left in the result."""
        size, taps = load_i64(instr + VALUE_SIZE), load_i64(instr + TAPS)
        width = _padded(size * load_i64(instr + KV_HEADS))
        out = load_i64(instr + OUT) + token * load_i64(instr + STRIDE) + 4 * size * head
        oldest = load_i32(load_i64(state + POSITIONS) + 4 * token) - taps + 1
        first = max(0, -oldest)
        for tap in range(first, taps):
            values = _row(instr, state, token, head, oldest + tap, value_bytes)
            weight = load_i64(instr + WEIGHT) + 4 * (width * tap + size * head)
            for c in range(begin, end, 16):
                sums = same(0.0) if tap == first else load_f32(out + 4 * c)
                sums = add(sums, mul(load_f32(weight + 4 * c), load(values + value_bytes * c)))
                store_part(out + 4 * c, sums, end - c)

    def conv(instr, state, tid, nth):
        size, heads = load_i64(instr + VALUE_SIZE), load_i64(instr + KV_HEADS)
        spans = (size + SPAN - 1) // SPAN
        while True:
            unit = atomic_add(instr + COUNTER, 1)
            if unit >= load_i64(state + TOKENS) * heads * spans:
                break
            head, begin = unit // spans % heads, unit % spans * SPAN
            span(instr, state, unit // (heads * spans), head, begin, min(begin + SPAN, size))

    return conv


KERNELS = {"conv_f16": _kernel(load_f16, 2), "conv_f32": _kernel(load_f32, 4)}
