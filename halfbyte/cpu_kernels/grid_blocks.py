"""Blocks of formats that store places in a grid: looked up here, once, so that every weight gets a code of its own.

As in `blocks.py`, `name(w, s, row)` reads the block at `s` and returns its length. The 256 codes of a block first lie
in a row, one a byte, then go to the planes of the family. Grids are held as steps from the smallest magnitude on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..quant import grids
from . import packed
from .blocks import move_bytes, move_half
from .jit import helper
from .memory import (
    load_byte,
    load_u16,
    load_u32,
    room_of_256,
    store_byte,
    store_u16,
    store_u32,
    store_word,
)
from .packed import IQ2

ONES = 0x0101010101010101


def _words(grid: NDArray[np.int16], magnitudes: tuple[int, ...]) -> NDArray[np.int64]:
    """A grid as words, a byte a weight: which of the magnitudes it has."""
    steps = np.searchsorted(magnitudes, grid).astype(np.uint8)
    return np.ascontiguousarray(steps).view(f"<u{grid.shape[1]}")[:, 0].astype(np.int64)


IQ2_XXS, IQ2_XS, IQ2_S = (_words(grid, IQ2.positive) for grid in (grids.IQ2_XXS, grids.IQ2_XS, grids.IQ2_S))
IQ3_XXS, IQ3_S = _words(grids.IQ3_XXS, packed.IQ3_XXS.positive), _words(grids.IQ3_S, (1, 3, 5, 7, 9, 11, 13, 15))
IQ1 = _words(grids.IQ1, (-1, 0, 1))


# --- codes in a row ---------------------------------------------------------------------------------------------------


SIGNS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").view("<i8")[:, 0] * 255
"""Eight sign bits as a word, whose bytes are 255 where one is set."""


@helper
def _with_signs(steps, bits, positive):
    """Codes in ascending order of value, from steps of magnitude and sign bits; `positive` steps are below zero."""
    return steps + positive * ONES - ((2 * steps + ONES) & SIGNS[bits])


@helper
def _even(bits):
    """Seven sign bits and the eighth that makes their number even."""
    parity = bits ^ bits >> 4
    parity ^= parity >> 2
    parity ^= parity >> 1
    return bits | (parity & 1) << 7


# --- from the row to planes -------------------------------------------------------------------------------------------


@helper
def _two_bits(target, codes, row):
    """The low 2 bits of every code: a byte holds those of four groups of 32."""
    for half in range(2):
        for k in range(8):
            place, word = codes + 128 * half + 4 * k, 0
            for quarter in range(4):
                word |= (load_u32(place + 32 * quarter) & 0x03030303) << 2 * quarter
            store_u32(target + 512 * half + 64 * k + 4 * row, word)


@helper
def _third_bit(target, codes, row):
    """Bit 2 of every code: a byte holds those of eight groups."""
    for k in range(8):
        word = 0
        for group in range(8):
            word |= (load_u32(codes + 32 * group + 4 * k) >> 2 & 0x01010101) << group
        store_u32(target + 64 * k + 4 * row, word)


@helper
def _nibbles(target, codes, row):
    """All 4 bits: low halves are the first 16 columns of a group, high halves the others."""
    for group in range(8):
        for k in range(4):
            place = codes + 32 * group + 4 * k
            word = load_u32(place) | load_u32(place + 16) << 4
            store_u32(target + 256 * group + 64 * k + 4 * row, word)


@helper
def _three_bits(w, codes, row):
    _third_bit(w + 160, codes, row)
    _two_bits(w + 672, codes, row)


# --- formats ----------------------------------------------------------------------------------------------------------


@helper
def iq2_xxs(w, s, row):
    """A word of four places and one of four times 7 signs below the scale, every 32 weights."""
    codes = room_of_256()
    move_half(w, s, row)
    for g in range(8):
        signs = load_u32(s + 6 + 8 * g)
        for i in range(4):
            steps = IQ2_XXS[load_byte(s + 2 + 8 * g + i)]
            store_word(codes + 32 * g + 8 * i, _with_signs(steps, _even(signs >> 7 * i & 127), 3))
        store_byte(w + 32 + 16 * g + row, (signs >> 28) * 17)
    _three_bits(w, codes, row)
    return 66


@helper
def iq2_xs(w, s, row):
    codes = room_of_256()
    move_half(w, s, row)
    for i in range(32):
        place = load_u16(s + 2 + 2 * i)
        store_word(codes + 8 * i, _with_signs(IQ2_XS[place & 511], _even(place >> 9), 3))
    move_bytes(w + 32, s + 66, row, 8)
    _three_bits(w, codes, row)
    return 74


@helper
def iq2_s(w, s, row):
    codes = room_of_256()
    move_half(w, s, row)
    for i in range(32):
        place = load_byte(s + 2 + i) | (load_byte(s + 66 + i // 4) >> 2 * (i % 4) & 3) << 8
        store_word(codes + 8 * i, _with_signs(IQ2_S[place], load_byte(s + 34 + i), 3))
    move_bytes(w + 32, s + 74, row, 8)
    _three_bits(w, codes, row)
    return 82


@helper
def iq3_xxs(w, s, row):
    codes = room_of_256()
    move_half(w, s, row)
    for g in range(8):
        signs = load_u32(s + 66 + 4 * g)
        for i in range(4):
            place = s + 2 + 8 * g + 2 * i
            steps = IQ3_XXS[load_byte(place)] | IQ3_XXS[load_byte(place + 1)] << 32
            store_word(codes + 32 * g + 8 * i, _with_signs(steps, _even(signs >> 7 * i & 127), 8))
        store_byte(w + 32 + 16 * g + row, signs >> 28)
    _nibbles(w + 160, codes, row)
    return 98


@helper
def iq3_s(w, s, row):
    codes = room_of_256()
    move_half(w, s, row)
    for i in range(32):
        place, high = s + 2 + 2 * i, load_byte(s + 66 + i // 4) >> 2 * (i % 4)
        first, second = load_byte(place) | (high & 1) << 8, load_byte(place + 1) | (high >> 1 & 1) << 8
        store_word(codes + 8 * i, _with_signs(IQ3_S[first] | IQ3_S[second] << 32, load_byte(s + 74 + i), 8))
    for g in range(8):
        store_byte(w + 32 + 16 * g + row, load_byte(s + 106 + g // 2) >> 4 * (g % 2) & 15)
    _nibbles(w + 160, codes, row)
    return 110


@helper
def iq1_s(w, s, row):
    """Codes are 0, 1, 2; a group's shift goes with its scale."""
    codes = room_of_256()
    move_half(w, s, row)
    for g in range(8):
        high = load_u16(s + 34 + 2 * g)
        for i in range(4):
            place = load_byte(s + 2 + 4 * g + i) | (high >> 3 * i & 7) << 8
            store_word(codes + 32 * g + 8 * i, IQ1[place])
        store_byte(w + 32 + 16 * g + row, high >> 12)
    _two_bits(w + 160, codes, row)
    return 50


@helper
def iq1_m(w, s, row):
    """Every eight weights have a shift, up or down: six values in all. The half is spread over the scales' top bits."""
    codes = room_of_256()
    half = 0
    for k in range(4):
        half |= load_u16(s + 48 + 2 * k) >> 12 << 4 * k
    store_u16(w + 2 * row, half)
    for i in range(32):
        high = load_byte(s + 32 + i // 2) >> 4 * (i % 2)
        up = ONES * (1 - (high >> 3 & 1))
        store_word(codes + 8 * i, 2 * IQ1[load_byte(s + i) | (high & 7) << 8] + up)
    for g in range(8):
        scales = load_u16(s + 48 + 2 * (g // 2)) >> 6 * (g % 2)
        store_byte(w + 32 + 16 * g + row, scales & 7 | (scales >> 3 & 7) << 4)
    _three_bits(w, codes, row)
    return 56


@helper
def tq1_0(w, s, row):
    """Five digits of base 3 a byte, as a fraction of 256; after 48 bytes, 4 bytes with four."""
    codes = room_of_256()
    move_half(w, s + 52, row)
    for digit in range(5):
        power = 3**digit
        for i in range(32):
            store_byte(codes + 32 * digit + i, _digit(s + i, power))
        for i in range(16):
            store_byte(codes + 160 + 16 * digit + i, _digit(s + 32 + i, power))
        if digit < 4:
            for i in range(4):
                store_byte(codes + 240 + 4 * digit + i, _digit(s + 48 + i, power))
    _two_bits(w + 32, codes, row)
    return 54


@helper
def _digit(address, power):
    return (load_byte(address) * power & 255) * 3 >> 8
