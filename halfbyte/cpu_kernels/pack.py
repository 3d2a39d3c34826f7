"""From the file's rows to packed tiles, one kernel a format. Reads `rows` rows, writes whole tiles of 16.

Bits keep their meaning, only their places change: in most formats four bytes of a row move as one word.
"""

from __future__ import annotations

from collections.abc import Callable

from .instruction import COUNTER, LAYOUTS
from .jit import helper
from .memory import atomic_add, load_byte, load_i64, load_u16, load_u32, store_byte, store_i64, store_u16, store_u32
from .packed import FROM_FILE, PACKED

SOURCE, TARGET, ROWS, COLUMNS, ROW_BYTES, TILE_BYTES = LAYOUTS["pack"].offsets()


@helper
def _half(target, source, row):
    store_u16(target + 2 * row, load_u16(source))


@helper
def _words(target, source, row, count):
    """`count` groups of four bytes, each to the next vector of 64 bytes."""
    for k in range(count):
        store_u32(target + 64 * k + 4 * row, load_u32(source + 4 * k))


@helper
def _every_fourth(bits):
    """Bits 0, 4, 8 .. 28 of a word, side by side."""
    bits = bits & 0x11111111
    bits = (bits | bits >> 3) & 0x03030303
    bits = (bits | bits >> 6) & 0x000F000F
    return (bits | bits >> 12) & 0xFF


@helper
def _fifth_bits(target, source, row):
    """32 bits, bit c of column c, to a vector whose byte 4 * row + i holds columns i, i + 4, i + 8 ..."""
    bits = load_u32(source)
    for i in range(4):
        store_byte(target + 4 * row + i, _every_fourth(bits >> i))


@helper
def q4_0(w, s, row):
    _half(w, s, row)
    _words(w + 32, s + 2, row, 4)
    return 18


@helper
def q4_1(w, s, row):
    _half(w, s, row)
    _half(w + 32, s + 2, row)
    _words(w + 64, s + 4, row, 4)
    return 20


@helper
def q5_0(w, s, row):
    _half(w, s, row)
    _fifth_bits(w + 32, s + 2, row)
    _words(w + 96, s + 6, row, 4)
    return 22


@helper
def q5_1(w, s, row):
    _half(w, s, row)
    _half(w + 32, s + 2, row)
    _fifth_bits(w + 64, s + 4, row)
    _words(w + 128, s + 8, row, 4)
    return 24


@helper
def q8_0(w, s, row):
    _half(w, s, row)
    for k in range(8):
        store_u32(w + 32 + 64 * k + 4 * row, load_u32(s + 2 + 4 * k) ^ 0x80808080)
    return 34


@helper
def _k_scales(w, s, row):
    """The 12 bytes of eight 6-bit scales and offsets: four whole ones, then low nibbles with the spare top bits."""
    for g in range(4):
        low, high = load_byte(s + g), load_byte(s + 4 + g)
        mixed = load_byte(s + 8 + g)
        store_byte(w + 64 + 16 * g + row, low & 63)
        store_byte(w + 192 + 16 * g + row, high & 63)
        store_byte(w + 64 + 16 * (g + 4) + row, (mixed & 15) | (low >> 6) << 4)
        store_byte(w + 192 + 16 * (g + 4) + row, mixed >> 4 | (high >> 6) << 4)


@helper
def q4_k(w, s, row):
    _half(w, s, row)
    _half(w + 32, s + 2, row)
    _k_scales(w, s + 4, row)
    _words(w + 320, s + 16, row, 32)
    return 144


@helper
def q5_k(w, s, row):
    _half(w, s, row)
    _half(w + 32, s + 2, row)
    _k_scales(w, s + 4, row)
    _words(w + 320, s + 16, row, 8)
    _words(w + 832, s + 48, row, 32)
    return 176


@helper
def q6_k(w, s, row):
    _half(w, s + 208, row)
    for g in range(16):
        store_byte(w + 32 + 16 * g + row, load_byte(s + 192 + g))
    _words(w + 288, s, row, 32)
    _words(w + 2336, s + 128, row, 16)
    return 210


@helper
def f16(w, s, row):
    store_u16(w + 2 * row, load_u16(s))
    return 2


@helper
def bf16(w, s, row):
    store_u16(w + 2 * row, load_u16(s))
    return 2


@helper
def f32(w, s, row):
    store_u32(w + 4 * row, load_u32(s))
    return 4


@helper
def _pack(instr, block, columns, step_bytes):
    rows, row_bytes, tile_bytes = load_i64(instr + ROWS), load_i64(instr + ROW_BYTES), load_i64(instr + TILE_BYTES)
    steps = load_i64(instr + COLUMNS) // columns
    while True:
        first = 16 * atomic_add(instr + COUNTER, 1)
        if first >= rows:
            break
        tile = load_i64(instr + TARGET) + (first // 16) * tile_bytes
        if first + 16 > rows:
            for i in range(0, tile_bytes, 8):
                store_i64(tile + i, 0)
        for row in range(min(16, rows - first)):
            source = load_i64(instr + SOURCE) + (first + row) * row_bytes
            for step in range(steps):
                source += block(tile + step * step_bytes, source, row)


def _kernel(name: str) -> Callable[..., None]:
    block, columns, step_bytes = globals()[name], PACKED[name].columns, PACKED[name].step_bytes

    def pack(instr, state, tid, nth):
        _pack(instr, block, columns, step_bytes)

    return pack


KERNELS = {f"pack_{name}": _kernel(name) for name in FROM_FILE}
