"""Keys and values into their pages: of a key page the token is the innermost index, of a value page the channel."""

from __future__ import annotations

from .instruction import LAYOUTS
from .instruction import state as word
from .memory import load_float, load_i32, load_i64, store_half
from .ops import load_f32, store_f16

K, V, KEYS, VALUES, KV_HEADS, KEY_SIZE, VALUE_SIZE, K_STRIDE, V_STRIDE = LAYOUTS["kv_write"].offsets()
TOKENS, SLOTS = word("tokens"), word("slots")


def kv_write(instr, state, tid, nth):
    """Tokens are dealt out in turn. A page holds 16 tokens of all heads of a layer, as halves."""
    heads, key_size, value_size = load_i64(instr + KV_HEADS), load_i64(instr + KEY_SIZE), load_i64(instr + VALUE_SIZE)
    for token in range(tid, load_i64(state + TOKENS), nth):
        slot = load_i32(load_i64(state + SLOTS) + 4 * token)
        page, place = slot // 16, slot % 16
        k = load_i64(instr + K) + token * load_i64(instr + K_STRIDE)
        v = load_i64(instr + V) + token * load_i64(instr + V_STRIDE)
        key = load_i64(instr + KEYS) + page * heads * key_size * 32 + 2 * place
        for c in range(heads * key_size):
            store_half(key + 32 * c, load_float(k + 4 * c))
        padded = (value_size + 15) // 16 * 16
        value = load_i64(instr + VALUES) + 32 * page * heads * padded + 2 * place * padded
        for _head in range(heads):
            for c in range(0, value_size, 16):
                store_f16(value + 2 * c, load_f32(v + 4 * c))
            value += 32 * padded
            v += 4 * value_size


KERNELS = {"kv_write": kv_write}
