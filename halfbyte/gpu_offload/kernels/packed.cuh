// Packed weights: how 16 rows of a matrix lie in memory, and what they mean.
//
// A tile of 16 rows is a sequence of steps of COLUMNS columns, the last one padded with zeros. A step begins with what
// scales are made of, and the planes of the codes follow, for each pair of groups of 32 columns. With g = lane / 4 and
// t = lane % 4 a lane holds four registers of a group, as the matrix instruction wants them: bytes i of register 0 are
// columns 4t + i of row g, of 1 of row g + 8, of 2 columns 16 + 4t + i of row g, of 3 of row g + 8. In a pair:
//   4 bits: 16 bytes a lane, words of group 0 row g, group 0 row g + 8, group 1 row g, group 1 row g + 8; byte i has
//           column 4t + i below and 16 + 4t + i above. Where codes are looked up in a table of 16, the lower half of
//           the word has the four nibbles 4t + i and the upper half those of 16 + 4t + i.
//   2 bits: 8 bytes a lane, a word a group; bits 2r and 2r + 1 of byte i belong to register r.
//   1 bit:  4 bytes a lane; bit r of byte i belongs to register r of group 0, bit 4 + r to that of group 1.
//   8 bits: 16 bytes a lane for group 0, all lanes, then for group 1; a word a register.
// A weight is scale * code + offset.
#pragma once
#include <words.cuh>

// --- planes: `add(a, at, l)` puts the codes of a pair into registers a[group][register] ---------------------------------

struct FourBits {
    static const int PAIR_BYTES = 512;
    static WORD void read(u32 (&a)[2][4], const u8 *at, int l) {
        const uint4 v = *(const uint4 *)(at + 16 * l);
        const u32 w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            a[i / 2][i % 2] = w[i] & 0x0f0f0f0f;
            a[i / 2][i % 2 + 2] = w[i] >> 4 & 0x0f0f0f0f;
        }
    }
};

struct EightBits {
    static const int PAIR_BYTES = 1024;
    static WORD void read(u32 (&a)[2][4], const u8 *at, int l) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const uint4 v = *(const uint4 *)(at + 512 * i + 16 * l);
            a[i][0] = v.x, a[i][1] = v.y, a[i][2] = v.z, a[i][3] = v.w;
        }
    }
};

// Two bits at bit TO of every byte.
template <int TO> struct TwoBits {
    static const int PAIR_BYTES = 256;
    static WORD void add(u32 (&a)[2][4], const u8 *at, int l) {
        const uint2 v = *(const uint2 *)(at + 8 * l);
#pragma unroll
        for (int r = 0; r < 4; r++) {
            a[0][r] |= (2 * r < TO ? v.x << (TO - 2 * r) : v.x >> (2 * r - TO)) & 0x03030303u << TO;
            a[1][r] |= (2 * r < TO ? v.y << (TO - 2 * r) : v.y >> (2 * r - TO)) & 0x03030303u << TO;
        }
    }
};

// One bit at bit TO of every byte.
template <int TO> struct OneBit {
    static const int PAIR_BYTES = 128;
    static WORD void add(u32 (&a)[2][4], const u8 *at, int l) {
        const u32 v = *(const u32 *)(at + 4 * l);
#pragma unroll
        for (int r = 0; r < 8; r++) a[r / 4][r % 4] |= (r < TO ? v << (TO - r) : v >> (r - TO)) & 0x01010101u << TO;
    }
};

WORD void clear(u32 (&a)[2][4]) {
#pragma unroll
    for (int r = 0; r < 8; r++) a[r / 4][r % 4] = 0;
}

// --- tables: four codes to four signed bytes ----------------------------------------------------------------------------

WORD constexpr u32 four(int a, int b, int c, int d) {
    return u32(u8(a)) | u32(u8(b)) << 8 | u32(u8(c)) << 16 | u32(u8(d)) << 24;
}

struct Iq4Levels {
    static const u32 A = four(-127, -104, -83, -65), B = four(-49, -35, -22, -10);
    static const u32 C = four(1, 13, 25, 38), D = four(53, 69, 89, 113);
};

struct E2m1Levels {
    static const u32 A = four(0, 1, 2, 3), B = four(4, 6, 8, 12), C = four(0, -1, -2, -3), D = four(-4, -6, -8, -12);
};

struct Iq3XxsLevels {
    static const u32 A = four(-62, -52, -44, -36), B = four(-28, -20, -12, -4);
    static const u32 C = four(4, 12, 20, 28), D = four(36, 44, 52, 62);
};

struct Iq2Levels {
    static const u32 A = four(-43, -25, -8, 8), B = four(25, 43, 0, 0);
};

struct Iq1Levels {
    static const u32 A = four(-9, -7, -1, 1), B = four(7, 9, 0, 0);
};

// Four nibbles in the lower half of a word.
template <class Levels> WORD u32 look_up_nibbles(u32 codes) {
    const u32 place = codes & 0x7777;
    const u32 first = __byte_perm(Levels::A, Levels::B, place), second = __byte_perm(Levels::C, Levels::D, place);
    return __byte_perm(first, second, (codes & 0x8888) >> 1 | 0x3210);
}

// Four bytes below 8.
template <class Levels> WORD u32 look_up_bytes(u32 codes) {
    return __byte_perm(Levels::A, Levels::B, __byte_perm(codes | codes >> 4, 0, 0x4420));
}

template <class Levels> struct FourBitsOf {
    static const int PAIR_BYTES = 512;
    static WORD void read(u32 (&a)[2][4], const u8 *at, int l) {
        const uint4 v = *(const uint4 *)(at + 16 * l);
        const u32 w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            a[i / 2][i % 2] = look_up_nibbles<Levels>(w[i]);
            a[i / 2][i % 2 + 2] = look_up_nibbles<Levels>(w[i] >> 16);
        }
    }
};

template <class Levels> struct ThreeBitsOf {
    static const int PAIR_BYTES = 384;
    static WORD void read(u32 (&a)[2][4], const u8 *at, int l) {
        clear(a);
        TwoBits<0>::add(a, at, l);
        OneBit<2>::add(a, at + 256, l);
#pragma unroll
        for (int r = 0; r < 8; r++) a[r / 4][r % 4] = look_up_bytes<Levels>(a[r / 4][r % 4]);
    }
};

struct TwoBitsAlone {
    static const int PAIR_BYTES = 256;
    static WORD void read(u32 (&a)[2][4], const u8 *at, int l) {
        clear(a);
        TwoBits<0>::add(a, at, l);
    }
};

struct OneBitAlone {
    static const int PAIR_BYTES = 128;
    static WORD void read(u32 (&a)[2][4], const u8 *at, int l) {
        clear(a);
        OneBit<0>::add(a, at, l);
    }
};

template <class Low, class High> struct Both {
    static const int PAIR_BYTES = Low::PAIR_BYTES + High::PAIR_BYTES;
    static WORD void read(u32 (&a)[2][4], const u8 *at, int l) {
        Low::read(a, at, l);
        High::add(a, at + Low::PAIR_BYTES, l);
    }
};

// --- scales -----------------------------------------------------------------------------------------------------------------
// What a lane keeps of a row of a tile, and from it what belongs to group `group` of a step and half `half` of it. WHOLE
// ones are whole numbers times factors of the row, so that a step's products can be summed as whole numbers; `part` gives
// {scale, offset} as such, others as floats. Where offsets are IN_BYTES, `bytes_of(row, t)` gives those of four neighbouring
// groups from 4t on, or of four halves, so that a matrix instruction multiplies them with sums of x.

struct Scale {
    float scale, offset;
};

// Word t of a row's bytes; a row of eight has two.
WORD u32 word_of(const uint2 &words, int t) { return t == 0 ? words.x : t == 1 ? words.y : 0; }
WORD u32 word_of(const uint4 &words, int t) { return t == 0 ? words.x : t == 1 ? words.y : t == 2 ? words.z : words.w; }

struct WholeScale {
    i32 scale, offset;
};

// Byte i of a word, for an i that is known when compiled. As a whole word: conversions of narrower types are slow.
WORD u32 byte_of(u32 word, int i) { return __byte_perm(word, 0, 0x4440 | i); }
WORD u32 byte_of(const uint2 &words, int i) { return byte_of(i < 4 ? words.x : words.y, i & 3); }
WORD u32 byte_of(const uint4 &words, int i) {
    return byte_of(i < 4 ? words.x : i < 8 ? words.y : i < 12 ? words.z : words.w, i & 3);
}

// The same with its sign.
WORD i32 signed_byte_of(u32 word, int i) { return signed_byte(word, i); }
WORD i32 signed_byte_of(const uint2 &words, int i) { return signed_byte_of(i < 4 ? words.x : words.y, i & 3); }
WORD i32 signed_byte_of(const uint4 &words, int i) {
    return signed_byte_of(i < 4 ? words.x : i < 8 ? words.y : i < 12 ? words.z : words.w, i & 3);
}

WORD float half_of(u32 halves, int i) { return half_to_float(u16(halves >> 16 * i)); }

// A half a group [16, 2]; codes lie MIDDLE / 2 above their value.
template <int MIDDLE> struct HalfEach {
    static const int COLUMNS = 64, BYTES = 64;
    static const bool WHOLE = false, HALVES = false, OFFSET = MIDDLE != 0, IN_BYTES = false;
    typedef u32 Row;
    static WORD u32 bytes_of(Row, int) { return 0; }
    static WORD Row row(const u8 *step, int row) { return ((const u32 *)step)[row]; }
    static WORD Scale part(Row r, int group, int half) {
        const float d = half_of(r, group);
        return {d, d * (-0.5f * MIDDLE)};
    }
};

// Halves [16, 2] for scales, then for offsets.
struct TwoHalvesEach {
    static const int COLUMNS = 64, BYTES = 128;
    static const bool WHOLE = false, HALVES = false, OFFSET = true, IN_BYTES = false;
    typedef uint2 Row;
    static WORD u32 bytes_of(Row, int) { return 0; }
    static WORD Row row(const u8 *step, int row) {
        return make_uint2(((const u32 *)step)[row], ((const u32 *)step)[16 + row]);
    }
    static WORD Scale part(Row r, int group, int half) { return {half_of(r.x, group), half_of(r.y, group)}; }
};

// Powers of two [16, 2], half of what they are elsewhere since levels are doubled.
struct PowerEach {
    static const int COLUMNS = 64, BYTES = 32;
    static const bool WHOLE = false, HALVES = false, OFFSET = false, IN_BYTES = false;
    typedef u32 Row;
    static WORD u32 bytes_of(Row, int) { return 0; }
    static WORD Row row(const u8 *step, int row) { return ((const u16 *)step)[row]; }
    static WORD Scale part(Row r, int group, int half) {
        const u32 e = byte_of(r, group);
        return {__uint_as_float(e < 2 ? 0x00200000u << e : (e - 1) << 23), 0.f};
    }
};

// Floats of 8 bits [16, 4], four bits of exponent and three of fraction, halved since levels are doubled.
struct SmallFloatEach {
    static const int COLUMNS = 64, BYTES = 64;
    static const bool WHOLE = false, HALVES = true, OFFSET = false, IN_BYTES = false;
    typedef u32 Row;
    static WORD u32 bytes_of(Row, int) { return 0; }
    static WORD Row row(const u8 *step, int row) { return ((const u32 *)step)[row]; }
    static WORD Scale part(Row r, int group, int half) {
        const u32 bits = byte_of(r, 2 * group + half), e = bits >> 3, f = bits & 7;
        if (bits == 0 || bits == 0x7f) return {0.f, 0.f};
        return {e == 0 ? float(f) * 0.0009765625f : __uint_as_float((e + 119) << 23 | f << 20), 0.f};
    }
};

// Halves [16] for scales and for what is taken off, then unsigned bytes [16, 8] for each.
struct TwoBytesEach {
    static const int COLUMNS = 256, BYTES = 320;
    static const bool WHOLE = true, HALVES = false, OFFSET = true, IN_BYTES = true;
    struct Row {
        float scale, offset;
        uint2 scales, offsets;
    };
    static WORD u32 bytes_of(const Row &r, int t) { return word_of(r.offsets, t); }
    static WORD Row row(const u8 *step, int row) {
        const u16 *h = (const u16 *)step;
        const uint2 *bytes = (const uint2 *)(step + 64);
        return {half_to_float(h[row]), -half_to_float(h[16 + row]), bytes[row], bytes[16 + row]};
    }
    static WORD WholeScale part(const Row &r, int group, int half) {
        return {i32(byte_of(r.scales, group)), i32(byte_of(r.offsets, group))};
    }
};

// Halves [16] for scales and for what is taken off, then bytes [16, 16] with four bits of each, the scale's below.
struct TwoNibblesEach {
    static const int COLUMNS = 256, BYTES = 320;
    static const bool WHOLE = true, HALVES = true, OFFSET = true, IN_BYTES = true;
    struct Row {
        float scale, offset;
        uint4 both;
    };
    static WORD u32 bytes_of(const Row &r, int t) { return word_of(r.both, t) >> 4 & 0x0f0f0f0f; }
    static WORD Row row(const u8 *step, int row) {
        const u16 *h = (const u16 *)step;
        return {half_to_float(h[row]), -half_to_float(h[16 + row]), ((const uint4 *)(step + 64))[row]};
    }
    static WORD WholeScale part(const Row &r, int group, int half) {
        const u32 byte = byte_of(r.both, 2 * group + half);
        return {i32(byte & 15), i32(byte >> 4)};
    }
};

// Signed bytes of a row: eight, or sixteen.
template <bool SIXTEEN> struct Bytes {
    typedef uint2 Type;
};
template <> struct Bytes<true> {
    typedef uint4 Type;
};

// Halves [16], then signed bytes: [16, 8], or [16, 16] for halves of groups; times 1 / PARTS; codes lie MIDDLE / 2 above.
template <bool OF_HALVES, int MIDDLE, int PARTS = 1> struct ByteEach {
    typedef typename Bytes<OF_HALVES>::Type Words;
    static const int COLUMNS = 256, BYTES = 32 + 16 * int(sizeof(Words));
    static const bool WHOLE = true, HALVES = OF_HALVES, OFFSET = MIDDLE != 0, IN_BYTES = true;
    struct Row {
        float scale, offset;
        Words bytes;
    };
    static WORD u32 bytes_of(const Row &r, int t) { return word_of(r.bytes, t); }
    static WORD Row row(const u8 *step, int row) {
        const float scale = half_to_float(((const u16 *)step)[row]) * (1.f / PARTS);
        return {scale, scale * (-0.5f * MIDDLE), ((const Words *)(step + 32))[row]};
    }
    static WORD WholeScale part(const Row &r, int group, int half) {
        const i32 scale = signed_byte_of(r.bytes, OF_HALVES ? 2 * group + half : group);
        return {scale, scale};
    }
};

// Halves [16], then bytes [16, 8]: a scale below, and in the top bit whether values are an eighth less, not more. Codes
// lie 1 above.
struct ShiftedByteEach {
    static const int COLUMNS = 256, BYTES = 160;
    static const bool WHOLE = true, HALVES = false, OFFSET = true, IN_BYTES = false; // offsets are up to 135
    struct Row {
        float scale, offset;
        uint2 bytes;
    };
    static WORD u32 bytes_of(const Row &, int) { return 0; }
    static WORD Row row(const u8 *step, int row) {
        const float scale = half_to_float(((const u16 *)step)[row]);
        return {scale, scale * -0.125f, ((const uint2 *)(step + 32))[row]};
    }
    static WORD WholeScale part(const Row &r, int group, int half) {
        const i32 byte = i32(byte_of(r.bytes, group)), scale = byte & 127;
        return {scale, byte & 128 ? 9 * scale : 7 * scale};
    }
};

// Halves [16] for all columns; codes lie 1 above.
struct HalfForAll {
    static const int COLUMNS = 256, BYTES = 32;
    static const bool WHOLE = true, HALVES = false, OFFSET = true, IN_BYTES = true;
    struct Row {
        float scale, offset;
    };
    static WORD u32 bytes_of(const Row &, int t) { return t < 2 ? 0x01010101 : 0; }
    static WORD Row row(const u8 *step, int row) {
        const float scale = half_to_float(((const u16 *)step)[row]);
        return {scale, -scale};
    }
    static WORD WholeScale part(Row r, int group, int half) { return {1, 1}; }
};

// Halves [16, 2], one for 128 columns, doubled; codes lie half above.
struct HalfForMany {
    static const int COLUMNS = 256, BYTES = 64;
    static const bool WHOLE = false, HALVES = false, OFFSET = true, IN_BYTES = false;
    typedef u32 Row;
    static WORD u32 bytes_of(Row, int) { return 0; }
    static WORD Row row(const u8 *step, int row) { return ((const u32 *)step)[row]; }
    static WORD Scale part(Row r, int group, int half) {
        const float d = half_of(r, group / 4);
        return {2.f * d, -d};
    }
};

template <class Row> WORD Scale floats_of(const Row &row, WholeScale part) {
    return {row.scale * float(part.scale), row.offset * float(part.offset)};
}
template <class Row> WORD Scale floats_of(const Row &row, Scale part) { return part; }

// --- families -------------------------------------------------------------------------------------------------------------

template <class Scales_, class Planes_> struct Family {
    typedef Scales_ Scales;
    typedef Planes_ Planes;
    static const int COLUMNS = Scales::COLUMNS, PAIRS = COLUMNS / 64;
    static const int STEP_BYTES = Scales::BYTES + PAIRS * Planes::PAIR_BYTES;
    static_assert(STEP_BYTES % 16 == 0, "steps are copied in pieces of 16 bytes");
    static WORD void read(u32 (&a)[2][4], const u8 *step, int pair, int l) {
        Planes::read(a, step + Scales::BYTES + pair * Planes::PAIR_BYTES, l);
    }
    // As floats, of one row of a step.
    static WORD Scale scale(const u8 *step, int row, int group, int half) {
        const typename Scales::Row r = Scales::row(step, row);
        return floats_of(r, Scales::part(r, group, half));
    }
};

struct Q4_0 : Family<HalfEach<16>, FourBits> {};
struct Q4_1 : Family<TwoHalvesEach, FourBits> {};
struct Q5_0 : Family<HalfEach<32>, Both<FourBits, OneBit<4>>> {};
struct Q5_1 : Family<TwoHalvesEach, Both<FourBits, OneBit<4>>> {};
struct Q8_0 : Family<HalfEach<0>, EightBits> {};
struct Q2_K : Family<TwoNibblesEach, TwoBitsAlone> {};
struct Q3_K : Family<ByteEach<true, 8>, Both<TwoBitsAlone, OneBit<2>>> {};
struct Q4_K : Family<TwoBytesEach, FourBits> {};
struct Q5_K : Family<TwoBytesEach, Both<FourBits, OneBit<4>>> {};
struct Q6_K : Family<ByteEach<true, 64>, Both<FourBits, TwoBits<4>>> {};
struct IQ4_NL : Family<HalfEach<0>, FourBitsOf<Iq4Levels>> {};
struct IQ4_XS : Family<ByteEach<false, 0>, FourBitsOf<Iq4Levels>> {};
struct MXFP4 : Family<PowerEach, FourBitsOf<E2m1Levels>> {};
struct NVFP4 : Family<SmallFloatEach, FourBitsOf<E2m1Levels>> {};
struct IQ3_S : Family<ByteEach<false, 15>, FourBits> {}; // bytes are twice the odd scale
struct IQ3_XXS : Family<ByteEach<false, 0, 4>, FourBitsOf<Iq3XxsLevels>> {};
struct IQ2 : Family<ByteEach<true, 0, 8>, ThreeBitsOf<Iq2Levels>> {};
struct IQ1_M : Family<ByteEach<true, 0, 8>, ThreeBitsOf<Iq1Levels>> {};
struct IQ1_S : Family<ShiftedByteEach, TwoBitsAlone> {};
struct TQ2_0 : Family<HalfForAll, TwoBitsAlone> {};
struct Q1_0 : Family<HalfForMany, OneBitAlone> {};
