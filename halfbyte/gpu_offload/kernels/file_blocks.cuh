// Blocks as a file has them: what makes a step of their packed family. See quant/ for what they mean.
//
// `codes` gives the codes of columns c .. c + 3 of a block, as the family wants them; `scales` writes what row `row` of a
// step has of block k of the step.
#pragma once
#include <fields.cuh>
#include <packed.cuh>

namespace file {

// --- a half, or two, each 32 columns ------------------------------------------------------------------------------------

template <class Family, int LENGTH, int SIZE> struct Block {
    typedef Family Packed;
    static const int COLUMNS = LENGTH, BYTES = SIZE;
};

WORD void put_half(u8 *step, int i, const u8 *from) { ((u16 *)step)[i] = load_u16(from); }

struct Q4_0 : Block<::Q4_0, 32, 18> {
    static WORD u32 codes(const u8 *block, int c, const u8 *) { return fields<4, 16>(block + 2, c); }
    static WORD void scales(u8 *step, const u8 *block, int row, int k) { put_half(step, 2 * row + k, block); }
};

struct Q4_1 : Block<::Q4_1, 32, 20> {
    static WORD u32 codes(const u8 *block, int c, const u8 *) { return fields<4, 16>(block + 4, c); }
    static WORD void scales(u8 *step, const u8 *block, int row, int k) {
        put_half(step, 2 * row + k, block);
        put_half(step, 32 + 2 * row + k, block + 2);
    }
};

struct Q5_0 : Block<::Q5_0, 32, 22> {
    static WORD u32 codes(const u8 *block, int c, const u8 *) {
        return fields<4, 16>(block + 6, c) | bits(block + 2, c) << 4;
    }
    static WORD void scales(u8 *step, const u8 *block, int row, int k) { put_half(step, 2 * row + k, block); }
};

struct Q5_1 : Block<::Q5_1, 32, 24> {
    static WORD u32 codes(const u8 *block, int c, const u8 *) {
        return fields<4, 16>(block + 8, c) | bits(block + 4, c) << 4;
    }
    static WORD void scales(u8 *step, const u8 *block, int row, int k) { file::Q4_1::scales(step, block, row, k); }
};

struct Q8_0 : Block<::Q8_0, 32, 34> {
    static WORD u32 codes(const u8 *block, int c, const u8 *) { return load_u32(block + 2 + c); }
    static WORD void scales(u8 *step, const u8 *block, int row, int k) { put_half(step, 2 * row + k, block); }
};

struct IQ4_NL : Block<::IQ4_NL, 32, 18> {
    static WORD u32 codes(const u8 *block, int c, const u8 *) { return fields<4, 16>(block + 2, c); }
    static WORD void scales(u8 *step, const u8 *block, int row, int k) { put_half(step, 2 * row + k, block); }
};

// --- floats of 4 bits ---------------------------------------------------------------------------------------------------

struct MXFP4 : Block<::MXFP4, 32, 17> {
    static WORD u32 codes(const u8 *block, int c, const u8 *) { return fields<4, 16>(block + 1, c); }
    static WORD void scales(u8 *step, const u8 *block, int row, int k) { step[2 * row + k] = block[0]; }
};

struct NVFP4 : Block<::NVFP4, 64, 36> {
    static WORD u32 codes(const u8 *block, int c, const u8 *) { return fields<4, 8>(block + 4, c); }
    static WORD void scales(u8 *step, const u8 *block, int row, int k) {
        for (int i = 0; i < 4; i++) step[4 * row + i] = block[i] & 127;
    }
};

// --- 256 columns: halves times small numbers ----------------------------------------------------------------------------

struct Q2_K : Block<::Q2_K, 256, 84> {
    static WORD u32 codes(const u8 *block, int c, const u8 *) { return fields<2, 32>(block + 16, c); }
    static WORD void scales(u8 *step, const u8 *block, int row, int k) {
        put_half(step, row, block + 80);
        put_half(step, 16 + row, block + 82);
        for (int i = 0; i < 16; i++) step[64 + 16 * row + i] = block[i];
    }
};

struct Q3_K : Block<::Q3_K, 256, 110> {
    static WORD u32 codes(const u8 *block, int c, const u8 *) {
        return fields<2, 32>(block + 32, c) | fields<1, 32>(block, c) << 2;
    }
    static WORD void scales(u8 *step, const u8 *block, int row, int k) {
        put_half(step, row, block + 108);
        for (int i = 0; i < 16; i++) {
            const int low = block[96 + i % 8] >> 4 * (i / 8) & 15, high = block[104 + i % 4] >> 2 * (i / 4) & 3;
            step[32 + 16 * row + i] = u8((low | high << 4) - 32);
        }
    }
};

struct Q4_K : Block<::Q4_K, 256, 144> {
    static WORD u32 codes(const u8 *block, int c, const u8 *) { return fields<4, 32>(block + 16, c); }
    static WORD void scales(u8 *step, const u8 *block, int row, int k) {
        put_half(step, row, block);
        put_half(step, 16 + row, block + 2);
        u8 *scale = step + 64 + 8 * row, *offset = scale + 128;
        for (int i = 0; i < 4; i++) {
            const u8 first = block[4 + i], second = block[8 + i], mixed = block[12 + i];
            scale[i] = first & 63, offset[i] = second & 63;
            scale[4 + i] = (mixed & 15) | (first >> 2 & 48), offset[4 + i] = mixed >> 4 | (second >> 2 & 48);
        }
    }
};

struct Q5_K : Block<::Q5_K, 256, 176> {
    static WORD u32 codes(const u8 *block, int c, const u8 *) {
        return fields<4, 32>(block + 48, c) | fields<1, 32>(block + 16, c) << 4;
    }
    static WORD void scales(u8 *step, const u8 *block, int row, int k) { file::Q4_K::scales(step, block, row, k); }
};

struct Q6_K : Block<::Q6_K, 256, 210> {
    static WORD u32 codes(const u8 *block, int c, const u8 *) {
        return fields<4, 64>(block, c) | fields<2, 32>(block + 128, c) << 4;
    }
    static WORD void scales(u8 *step, const u8 *block, int row, int k) {
        put_half(step, row, block + 208);
        for (int i = 0; i < 16; i++) step[32 + 16 * row + i] = block[192 + i];
    }
};

struct IQ4_XS : Block<::IQ4_XS, 256, 136> {
    static WORD u32 codes(const u8 *block, int c, const u8 *) { return fields<4, 16>(block + 8, c); }
    static WORD void scales(u8 *step, const u8 *block, int row, int k) {
        put_half(step, row, block);
        const u32 high = load_u16(block + 2);
        for (int i = 0; i < 8; i++) step[32 + 8 * row + i] = u8((nibble(block + 4, i) | (high >> 2 * i & 3) << 4) - 32);
    }
};

// --- two or three values ------------------------------------------------------------------------------------------------

struct TQ2_0 : Block<::TQ2_0, 256, 66> {
    static WORD u32 codes(const u8 *block, int c, const u8 *) { return fields<2, 32>(block, c); }
    static WORD void scales(u8 *step, const u8 *block, int row, int k) { put_half(step, row, block + 64); }
};

// Digits of base 3, five a byte as a fraction of 256; the last 4 bytes have four.
struct TQ1_0 : Block<::TQ2_0, 256, 54> {
    static WORD u32 codes(const u8 *block, int c, const u8 *) {
        const int run = c < 160 ? 32 : c < 240 ? 16 : 4, first = c < 160 ? 0 : c < 240 ? 160 : 240;
        const u8 *at = block + first / 5 + (c - first) % run;
        u32 power = 1, word = 0;
        for (int digit = (c - first) / run; digit; digit--) power *= 3;
        for (int i = 0; i < 4; i++) word |= ((at[i] * power & 255) * 3 >> 8) << 8 * i;
        return word;
    }
    static WORD void scales(u8 *step, const u8 *block, int row, int k) { put_half(step, row, block + 52); }
};

struct Q1_0 : Block<::Q1_0, 128, 18> {
    static WORD u32 codes(const u8 *block, int c, const u8 *) { return bits(block + 2, c); }
    static WORD void scales(u8 *step, const u8 *block, int row, int k) { put_half(step, 2 * row + k, block); }
};

} // namespace file
