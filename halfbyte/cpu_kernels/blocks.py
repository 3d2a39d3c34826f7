"""How a block becomes its share of a packed step: `name(w, s, row)` reads the block at `s`, returns its length.

Bits keep their meaning, only their places change: in most formats four bytes of a row move as one word. Formats with a
grid are in `grid_blocks.py`.
"""

from __future__ import annotations

from .jit import helper
from .memory import load_byte, load_u16, load_u32, store_byte, store_u16, store_u32


@helper
def move_half(target, source, row):
    """Half-precision numbers of 16 rows lie side by side."""
    store_u16(target + 2 * row, load_u16(source))


@helper
def _minus_half(target, source, row):
    """A minimum, which is taken off: as the offset that is added."""
    store_u16(target + 2 * row, load_u16(source) ^ 0x8000)


@helper
def move_bytes(target, source, row, count):
    """`count` bytes, each to the next vector of 16 bytes."""
    for k in range(count):
        store_byte(target + 16 * k + row, load_byte(source + k))


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
    move_half(w, s, row)
    _words(w + 32, s + 2, row, 4)
    return 18


@helper
def q4_1(w, s, row):
    move_half(w, s, row)
    move_half(w + 32, s + 2, row)
    _words(w + 64, s + 4, row, 4)
    return 20


@helper
def q5_0(w, s, row):
    move_half(w, s, row)
    _fifth_bits(w + 32, s + 2, row)
    _words(w + 96, s + 6, row, 4)
    return 22


@helper
def q5_1(w, s, row):
    move_half(w, s, row)
    move_half(w + 32, s + 2, row)
    _fifth_bits(w + 64, s + 4, row)
    _words(w + 128, s + 8, row, 4)
    return 24


@helper
def q8_0(w, s, row):
    move_half(w, s, row)
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
def q2_k(w, s, row):
    move_half(w, s + 80, row)
    _minus_half(w + 32, s + 82, row)
    move_bytes(w + 64, s, row, 16)
    _words(w + 320, s + 16, row, 16)
    return 84


@helper
def q3_k(w, s, row):
    """Scales lie in the low nibbles of 8 bytes, then in the high ones; 4 bytes hold the top bits, 2 at a time."""
    move_half(w, s + 108, row)
    for g in range(16):
        low = load_byte(s + 96 + g % 8) >> 4 * (g // 8) & 15
        high = load_byte(s + 104 + g % 4) >> 2 * (g // 4) & 3
        store_byte(w + 32 + 16 * g + row, (low | high << 4) - 32)
    _words(w + 288, s, row, 8)
    _words(w + 800, s + 32, row, 16)
    return 110


@helper
def q4_k(w, s, row):
    move_half(w, s, row)
    _minus_half(w + 32, s + 2, row)
    _k_scales(w, s + 4, row)
    _words(w + 320, s + 16, row, 32)
    return 144


@helper
def q5_k(w, s, row):
    move_half(w, s, row)
    _minus_half(w + 32, s + 2, row)
    _k_scales(w, s + 4, row)
    _words(w + 320, s + 16, row, 8)
    _words(w + 832, s + 48, row, 32)
    return 176


@helper
def q6_k(w, s, row):
    move_half(w, s + 208, row)
    move_bytes(w + 32, s + 192, row, 16)
    _words(w + 288, s, row, 32)
    _words(w + 2336, s + 128, row, 16)
    return 210


@helper
def iq4_nl(w, s, row):
    move_half(w, s, row)
    _words(w + 32, s + 2, row, 4)
    return 18


@helper
def iq4_xs(w, s, row):
    move_half(w, s, row)
    high = load_u16(s + 2)
    for g in range(8):
        low = load_byte(s + 4 + g // 2) >> 4 * (g % 2) & 15
        store_byte(w + 32 + 16 * g + row, (low | (high >> 2 * g & 3) << 4) - 32)
    _words(w + 160, s + 8, row, 32)
    return 136


@helper
def mxfp4(w, s, row):
    store_byte(w + row, load_byte(s))
    _words(w + 16, s + 1, row, 4)
    return 17


@helper
def nvfp4(w, s, row):
    """Nibbles of 16 columns lie together: of two such runs, the first goes to low halves, the second to high ones."""
    for g in range(4):
        scale = load_byte(s + g) & 127
        store_byte(w + 16 * g + row, scale * (scale != 127))
    for g in range(2):
        for k in range(2):
            first, second = load_u32(s + 4 + 16 * g + 4 * k), load_u32(s + 12 + 16 * g + 4 * k)
            target = w + 64 + 256 * g + 64 * k + 4 * row
            store_u32(target, first & 0x0F0F0F0F | (second & 0x0F0F0F0F) << 4)
            store_u32(target + 128, first >> 4 & 0x0F0F0F0F | second & 0xF0F0F0F0)
    return 36


@helper
def tq2_0(w, s, row):
    move_half(w, s + 64, row)
    _words(w + 32, s, row, 16)
    return 66


@helper
def q1_0(w, s, row):
    move_half(w, s, row)
    for g in range(4):
        _fifth_bits(w + 32 + 64 * g, s + 2 + 4 * g, row)
    return 18


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
