"""Keys and values into their pages, rounded as their types say; see `kv_layout.py` and `model/kv_types.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .instruction import LAYOUTS
from .instruction import state as word
from .jit import helper
from .kv_reading import BLOCK
from .memory import load_byte, load_float, load_i32, load_i64, room_of_256, store_byte, store_float, store_half
from .ops import (
    absolute,
    add,
    div,
    first,
    half,
    lane,
    largest,
    load_f32,
    maximum,
    minimum,
    mul,
    nearest,
    same,
    store_f16,
    store_f32,
    store_i8,
    sub,
)

K, V, KEYS, VALUES, KV_HEADS, KEY_SIZE, VALUE_SIZE, K_STRIDE, V_STRIDE, KEY_BYTES, VALUE_BYTES = LAYOUTS[
    "kv_write"
].offsets()
TOKENS, SLOTS = word("tokens"), word("slots")
ZERO = np.float32(0)


@helper
def _scale_8(a, b):
    """The scale of up to 32 channels, a half, in all lanes."""
    return half(same(largest(maximum(absolute(a), absolute(b))) / np.float32(127)))


@helper
def _scale_4(a, b):
    """The same for numbers from -8 to 7: what is largest becomes -8."""
    zero = same(ZERO)
    top, bottom = largest(maximum(a, b)), largest(maximum(sub(zero, a), sub(zero, b)))
    return half(same((top if top > bottom else -bottom) / np.float32(-8)))


@helper
def _numbers(x, scale, low, high):
    """The whole numbers that a scale makes of channels; whichever if the scale is zero."""
    return maximum(minimum(nearest(div(x, scale)), same(high)), same(low))


@helper
def _numbers_8(x, scale):
    return _numbers(x, scale, np.float32(-127), np.float32(127))


@helper
def _numbers_4(x, scale):
    """From 0 to 15."""
    return add(_numbers(x, scale, np.float32(-8), np.float32(7)), same(np.float32(8)))


@helper
def _f32_key(page, place, x, size):
    for c in range(size):
        store_float(page + 64 * c + 4 * place, load_float(x + 4 * c))


@helper
def _f16_key(page, place, x, size):
    for c in range(size):
        store_half(page + 32 * c + 2 * place, load_float(x + 4 * c))


@helper
def _q8_0_key(page, place, x, size):
    room = room_of_256()
    for begin in range(0, size, BLOCK):
        n = min(BLOCK, size - begin)
        a, b = first(load_f32(x + 4 * begin), n), first(load_f32(x + 4 * begin + 64), n - 16)
        scale = _scale_8(a, b)
        store_half(page + 2 * place, lane(scale, 0))
        store_i8(room, _numbers_8(a, scale))
        store_i8(room + 16, _numbers_8(b, scale))
        for c in range(n):
            store_byte(page + 32 + 16 * c + place, load_byte(room + c))
        page += 32 + 16 * n


@helper
def _q4_0_key(page, place, x, size):
    room = room_of_256()
    for begin in range(0, size, BLOCK):
        n = min(BLOCK, size - begin)
        a, b = first(load_f32(x + 4 * begin), n), first(load_f32(x + 4 * begin + 64), n - 16)
        scale = _scale_4(a, b)
        store_half(page + 2 * place, lane(scale, 0))
        store_i8(room, _numbers_4(a, scale))
        store_i8(room + 16, _numbers_4(b, scale))
        for pair in range((n + 1) // 2):
            both = load_byte(room + 2 * pair) + 16 * load_byte(room + 2 * pair + 1)
            store_byte(page + 32 + 16 * pair + place, both)
        page += 32 + 16 * ((n + 1) // 2)


@helper
def _f32_value(page, place, x, size):
    row = page + 64 * place * ((size + 15) // 16)
    for c in range(0, size, 16):
        store_f32(row + 4 * c, load_f32(x + 4 * c))


@helper
def _f16_value(page, place, x, size):
    row = page + 32 * place * ((size + 15) // 16)
    for c in range(0, size, 16):
        store_f16(row + 2 * c, load_f32(x + 4 * c))


@helper
def _q8_0_value(page, place, x, size):
    row = page + (size + 31) // 32 * 32 + 16 * place * ((size + 15) // 16)
    for begin in range(0, size, BLOCK):
        n = min(BLOCK, size - begin)
        a, b = first(load_f32(x + 4 * begin), n), first(load_f32(x + 4 * begin + 64), n - 16)
        scale = _scale_8(a, b)
        store_half(page + begin + 2 * place, lane(scale, 0))
        store_i8(row + begin, _numbers_8(a, scale))
        if n > 16:
            store_i8(row + begin + 16, _numbers_8(b, scale))


@helper
def _q4_0_value(page, place, x, size):
    row = page + (size + 31) // 32 * (32 + 16 * place)
    for begin in range(0, size, BLOCK):
        n = min(BLOCK, size - begin)
        a, b = first(load_f32(x + 4 * begin), n), first(load_f32(x + 4 * begin + 64), n - 16)
        scale = _scale_4(a, b)
        store_half(page + begin + 2 * place, lane(scale, 0))
        store_i8(row + begin // 2, add(_numbers_4(a, scale), mul(same(np.float32(16)), _numbers_4(b, scale))))


WRITE_KEY = {"f32": _f32_key, "f16": _f16_key, "q8_0": _q8_0_key, "q4_0": _q4_0_key}
WRITE_VALUE = {"f32": _f32_value, "f16": _f16_value, "q8_0": _q8_0_value, "q4_0": _q4_0_value}


def kv_write_to(keys: str, values: str) -> Callable[..., Any]:
    """The kernel for a store of some types.

    Sixteen tokens under a head are dealt out at a time: threads that write to one page together wait for its lines.
    """
    write_key, write_value = WRITE_KEY[keys], WRITE_VALUE[values]

    def kv_write(instr, state, tid, nth):
        heads = load_i64(instr + KV_HEADS)
        key_size, value_size = load_i64(instr + KEY_SIZE), load_i64(instr + VALUE_SIZE)
        tokens = load_i64(state + TOKENS)
        for unit in range(tid, (tokens + 15) // 16 * heads, nth):
            head, begin = unit % heads, unit // heads * 16
            for token in range(begin, min(begin + 16, tokens)):
                slot = load_i32(load_i64(state + SLOTS) + 4 * token)
                k = load_i64(instr + K) + token * load_i64(instr + K_STRIDE)
                v = load_i64(instr + V) + token * load_i64(instr + V_STRIDE)
                page, place = slot // 16 * heads + head, slot % 16
                key_page = load_i64(instr + KEYS) + page * load_i64(instr + KEY_BYTES)
                write_key(key_page, place, k + 4 * key_size * head, key_size)
                value_page = load_i64(instr + VALUES) + page * load_i64(instr + VALUE_BYTES)
                write_value(value_page, place, v + 4 * value_size * head, value_size)

    return kv_write


KERNELS = {f"kv_write_{keys}_{values}": kv_write_to(keys, values) for keys in WRITE_KEY for values in WRITE_VALUE}
