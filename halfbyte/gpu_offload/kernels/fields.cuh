// Fields of a file's blocks, four neighbours at a time: a word with a byte each. Blocks are not aligned to anything.
#pragma once
#include <words.cuh>

namespace file {

const u32 ONES = 0x01010101u;

WORD u16 load_u16(const u8 *at) { return u16(at[0] | at[1] << 8); }
WORD u32 load_u32(const u8 *at) { return load_u16(at) | u32(load_u16(at + 2)) << 16; }

// Fields c .. c + 3 of WIDTH bits, where RUN bytes hold first all their lowest fields, then all the next.
template <int WIDTH, int RUN> WORD u32 fields(const u8 *data, int c) {
    const int per_run = RUN * 8 / WIDTH;
    const u8 *at = data + c / per_run * RUN + c % RUN;
    return load_u32(at) >> (c % per_run / RUN * WIDTH) & ONES * ((1 << WIDTH) - 1);
}

// Four bits, the lowest first, to a byte each.
WORD u32 spread(u32 bits) { return (bits & 15) * 0x00204081u & ONES; }

// Bits c .. c + 3.
WORD u32 bits(const u8 *data, int c) { return spread(data[c / 8] >> (c & 4)); }

WORD u32 nibble(const u8 *data, int i) { return data[i / 2] >> 4 * (i % 2) & 15; }

} // namespace file
