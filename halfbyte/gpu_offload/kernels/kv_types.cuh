// Types of keys and values in a page: what eight neighbouring channels of a token are made of, and what a number becomes.
//
// Codes of a head lie token after token, channels padded with zeros to a multiple of 8; scales of quantized types, halves
// [16, blocks of 32 channels], follow. `Raw` holds eight channels as they are loaded; `halves` makes four words of it,
// each with two channels, the first below. What is kept is the half times the block's scale.
#pragma once
#include <words.cuh>

WORD int padded_channels(int size) { return (size + 7) & ~7; }
WORD int kv_blocks(int size) { return (size + 31) / 32; }

struct KvF16 {
    static const bool SCALED = false, WIDE = false;
    static const int CODE_BITS = 16;
    typedef uint4 Raw;
    static WORD Raw load(const u8 *codes, int channel) { return load_streamed((const uint4 *)(codes + 2 * channel)); }
    static WORD Raw zero() { return make_uint4(0, 0, 0, 0); }
    static WORD void halves(u32 (&h)[4], const Raw &v) { h[0] = v.x, h[1] = v.y, h[2] = v.z, h[3] = v.w; }
    static WORD float value(const u8 *codes, int channel) { return half_to_float(((const u16 *)codes)[channel]); }
};

struct KvF32Raw {
    uint4 a, b;
};

struct KvF32 {
    static const bool SCALED = false, WIDE = true;
    static const int CODE_BITS = 32;
    typedef KvF32Raw Raw;
    static WORD Raw load(const u8 *codes, int channel) {
        const uint4 *at = (const uint4 *)(codes + 4 * channel);
        return {load_streamed(at), load_streamed(at + 1)};
    }
    static WORD Raw zero() { return {make_uint4(0, 0, 0, 0), make_uint4(0, 0, 0, 0)}; }
    static WORD void floats(float (&f)[8], const Raw &v) {
        const u32 bits[8] = {v.a.x, v.a.y, v.a.z, v.a.w, v.b.x, v.b.y, v.b.z, v.b.w};
#pragma unroll
        for (int i = 0; i < 8; i++) f[i] = __uint_as_float(bits[i]);
    }
    static WORD void halves(u32 (&h)[4], const Raw &v) {
        float f[8];
        floats(f, v);
#pragma unroll
        for (int i = 0; i < 4; i++) h[i] = floats_to_halves(f[2 * i], f[2 * i + 1]);
    }
    static WORD float value(const u8 *codes, int channel) { return ((const float *)codes)[channel]; }
};

// Signed bytes.
struct KvQ8 {
    static const bool SCALED = true, WIDE = false;
    static const int CODE_BITS = 8;
    static constexpr float SMALLEST = -127.f, LARGEST = 127.f;
    typedef uint2 Raw;
    static WORD Raw load(const u8 *codes, int channel) { return *(const uint2 *)(codes + channel); }
    static WORD Raw zero() { return make_uint2(0, 0); }
    // A byte below the upper byte of 1024 is 1024 + byte; 128 are added before and 1152 taken off after.
    static WORD u32 pair(u32 word, u32 selector) {
        return subtract_halves(__byte_perm(word ^ 0x80808080, 0x64646464, selector), 0x64806480);
    }
    static WORD void halves(u32 (&h)[4], const Raw &v) {
        h[0] = pair(v.x, 0x4140), h[1] = pair(v.x, 0x4342), h[2] = pair(v.y, 0x4140), h[3] = pair(v.y, 0x4342);
    }
    static WORD float value(const u8 *codes, int channel) { return float(((const i8 *)codes)[channel]); }
    static WORD float scale_of(float top, float bottom) { return fmaxf(top, -bottom) / 127.f; }
    static WORD void store(u8 *codes, int channel, int number, bool present) {
        if (present) codes[channel] = u8(number);
    }
};

// Four bits, 8 above the number. Of the word with eight channels bits 4i .. 4i + 3 belong to channel 2i, and those 16
// above to channel 2i + 1.
struct KvQ4 {
    static const bool SCALED = true, WIDE = false;
    static const int CODE_BITS = 4;
    static constexpr float SMALLEST = -8.f, LARGEST = 7.f;
    typedef u32 Raw;
    static WORD Raw load(const u8 *codes, int channel) { return *(const u32 *)(codes + channel / 2); }
    static WORD Raw zero() { return 0x88888888; }
    static WORD void halves(u32 (&h)[4], Raw v) {
#pragma unroll
        for (int i = 0; i < 4; i++) h[i] = subtract_halves((v >> 4 * i & 0x000f000f) | 0x64006400, 0x64086408);
    }
    static WORD int shift_of(int channel) { return channel % 8 / 2 * 4 + channel % 2 * 16; }
    static WORD float value(const u8 *codes, int channel) {
        return float(int(*(const u32 *)(codes + channel / 8 * 4) >> shift_of(channel) & 15) - 8);
    }
    static WORD float scale_of(float top, float bottom) { return (top > -bottom ? top : bottom) / -8.f; }
    // Eight neighbouring lanes make a word; all lanes of a warp call it.
    static WORD void store(u8 *codes, int channel, int number, bool present) {
        u32 word = u32(number + 8) << shift_of(channel);
        for (int mask = 1; mask < 8; mask *= 2) word |= shuffle_xor(word, mask);
        if (present && channel % 8 == 0) *(u32 *)(codes + channel / 2) = word;
    }
};

// One head of one layer in a page.
template <class Type> struct KvHead {
    u8 *codes;
    int row_bytes, blocks;
    WORD KvHead() : codes(nullptr), row_bytes(0), blocks(0) {}
    WORD KvHead(u8 *layer, int head, int size)
        : row_bytes(padded_channels(size) * Type::CODE_BITS / 8), blocks(Type::SCALED ? kv_blocks(size) : 0) {
        codes = layer + head * head_bytes();
    }
    WORD int head_bytes() const { return 16 * (row_bytes + 2 * blocks); }
    WORD u8 *row(int slot) const { return codes + slot * row_bytes; }
    WORD u16 *scales(int slot) const { return (u16 *)(codes + 16 * row_bytes) + slot * blocks; }
    WORD float value(int slot, int channel) const {
        const float code = Type::value(row(slot), channel);
        return Type::SCALED ? half_to_float(scales(slot)[channel / 32]) * code : code;
    }
};
