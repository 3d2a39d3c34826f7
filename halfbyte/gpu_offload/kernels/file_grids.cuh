// Blocks of formats that store places in a grid, as file_blocks.cuh has the others. A grid lies in memory as it is in
// quant/grids.py, a byte a weight: how many of the format's magnitudes are smaller.
#pragma once
#include <file_blocks.cuh>

namespace file {

// Codes in ascending order of value from magnitudes, POSITIVE of them, and from sign bits, the lowest first.
template <int POSITIVE> WORD u32 with_signs(u32 magnitudes, u32 signs) {
    return magnitudes + POSITIVE * ONES - ((2 * magnitudes + ONES) & spread(signs) * 255);
}

// Seven sign bits and the eighth that makes their number even.
WORD u32 even(u32 bits) {
    u32 parity = bits ^ bits >> 4;
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return bits | (parity & 1) << 7;
}

WORD u8 odd(u32 number) { return u8(2 * number + 1); }

// Sixteen numbers of 4 bits as odd scales.
WORD void put_odd_nibbles(u8 *step, const u8 *from, int row) {
    for (int i = 0; i < 16; i++) step[32 + 16 * row + i] = odd(nibble(from, i));
}

// Four places and four times 7 signs below a scale, every 32 columns.
struct IQ2_XXS : Block<::IQ2, 256, 66> {
    static WORD u32 codes(const u8 *block, int c, const u8 *grid) {
        const u8 *words = block + 2 + c / 32 * 8;
        const int i = c % 32 / 8;
        const u32 signs = even(load_u32(words + 4) >> 7 * i & 127);
        return with_signs<3>(load_u32(grid + 8 * words[i] + (c & 4)), signs >> (c & 4));
    }
    static WORD void scales(u8 *step, const u8 *block, int row, int k) {
        put_half(step, row, block);
        for (int i = 0; i < 16; i++) step[32 + 16 * row + i] = odd(block[9 + i / 2 * 8] >> 4);
    }
};

struct IQ2_XS : Block<::IQ2, 256, 74> {
    static WORD u32 codes(const u8 *block, int c, const u8 *grid) {
        const u32 place = load_u16(block + 2 + c / 8 * 2);
        return with_signs<3>(load_u32(grid + 8 * (place & 511) + (c & 4)), even(place >> 9) >> (c & 4));
    }
    static WORD void scales(u8 *step, const u8 *block, int row, int k) {
        put_half(step, row, block);
        put_odd_nibbles(step, block + 66, row);
    }
};

struct IQ2_S : Block<::IQ2, 256, 82> {
    static WORD u32 codes(const u8 *block, int c, const u8 *grid) {
        const int i = c / 8, place = block[2 + i] | (block[66 + i / 4] >> 2 * (i % 4) & 3) << 8;
        return with_signs<3>(load_u32(grid + 8 * place + (c & 4)), block[34 + i] >> (c & 4));
    }
    static WORD void scales(u8 *step, const u8 *block, int row, int k) {
        put_half(step, row, block);
        put_odd_nibbles(step, block + 74, row);
    }
};

struct IQ3_XXS : Block<::IQ3_XXS, 256, 98> {
    static WORD u32 codes(const u8 *block, int c, const u8 *grid) {
        const u32 signs = even(load_u32(block + 66 + c / 32 * 4) >> c % 32 / 8 * 7 & 127);
        return with_signs<8>(load_u32(grid + 4 * block[2 + c / 4]), signs >> (c & 4));
    }
    static WORD void scales(u8 *step, const u8 *block, int row, int k) {
        put_half(step, row, block);
        for (int i = 0; i < 8; i++) step[32 + 8 * row + i] = odd(block[69 + 4 * i] >> 4);
    }
};

// Levels are odd, so that the code lies 7.5 above half of one; scales are doubled for it.
struct IQ3_S : Block<::IQ3_S, 256, 110> {
    static WORD u32 codes(const u8 *block, int c, const u8 *grid) {
        const int place = block[2 + c / 4] | (block[66 + c / 32] >> c / 4 % 8 & 1) << 8;
        return with_signs<8>(load_u32(grid + 4 * place), block[74 + c / 8] >> (c & 4));
    }
    static WORD void scales(u8 *step, const u8 *block, int row, int k) {
        put_half(step, row, block);
        for (int i = 0; i < 8; i++) step[32 + 8 * row + i] = u8(2 * odd(nibble(block + 106, i)));
    }
};

struct IQ1_S : Block<::IQ1_S, 256, 50> {
    static WORD u32 codes(const u8 *block, int c, const u8 *grid) {
        const int place = block[2 + c / 8] | (load_u16(block + 34 + c / 32 * 2) >> c % 32 / 8 * 3 & 7) << 8;
        return load_u32(grid + 8 * place + (c & 4));
    }
    static WORD void scales(u8 *step, const u8 *block, int row, int k) {
        put_half(step, row, block);
        for (int i = 0; i < 8; i++) {
            const u32 high = load_u16(block + 34 + 2 * i);
            step[32 + 8 * row + i] = u8(odd(high >> 12 & 7) | (high >> 15) << 7);
        }
    }
};

// Every eight columns have a shift, up or down: six values in all. The half is spread over the top bits of scales.
struct IQ1_M : Block<::IQ1_M, 256, 56> {
    static WORD u32 codes(const u8 *block, int c, const u8 *grid) {
        const u32 high = nibble(block + 32, c / 8), place = block[c / 8] | (high & 7) << 8;
        return 2 * load_u32(grid + 8 * place + (c & 4)) + ONES * (1 - (high >> 3));
    }
    static WORD void scales(u8 *step, const u8 *block, int row, int k) {
        u32 half = 0;
        for (int i = 0; i < 4; i++) half |= u32(block[49 + 2 * i] >> 4) << 4 * i;
        ((u16 *)step)[row] = u16(half);
        for (int i = 0; i < 16; i++)
            step[32 + 16 * row + i] = odd(load_u16(block + 48 + i / 4 * 2) >> i % 4 * 3 & 7);
    }
};

} // namespace file
