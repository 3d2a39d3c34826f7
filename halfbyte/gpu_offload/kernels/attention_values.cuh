// What the values of a page add to the sums of up to eight query heads, by one warp.
#pragma once
#include <attention_page.cuh>

// Eight channels of a token in unit w of 64: 64w + 8g .. + 7; of scaled types, whose blocks must not meet in one
// instruction, 64w + 4g .. + 3 and 64w + 32 + 4g .. + 3.
template <class Type> struct Eight {
    static WORD int channel(int g, int j) { return 8 * g + j; }
    static WORD typename Type::Raw load(const u8 *codes, int start, int padded) {
        const int c = start + 8 * (lane() / 4);
        return c < padded ? Type::load(codes, c) : Type::zero();
    }
};

template <> struct Eight<KvQ8> {
    static WORD int channel(int g, int j) { return j / 4 * 32 + 4 * g + j % 4; }
    static WORD uint2 load(const u8 *codes, int start, int padded) {
        const int c = start + 4 * (lane() / 4);
        return make_uint2(c < padded ? *(const u32 *)(codes + c) : 0, c + 32 < padded ? *(const u32 *)(codes + c + 32) : 0);
    }
};

template <> struct Eight<KvQ4> {
    static WORD int channel(int g, int j) { return j / 4 * 32 + 4 * g + j % 4; }
    static WORD u32 four(const u8 *codes, int c, int padded) {
        const u32 word = c < padded ? *(const u32 *)(codes + c / 8 * 4) : KvQ4::zero();
        return word >> c % 8 * 2 & 0x00ff00ff;
    }
    static WORD u32 load(const u8 *codes, int start, int padded) {
        const int c = start + 4 * (lane() / 4);
        return four(codes, c, padded) | four(codes, c + 32, padded) << 8;
    }
};

template <class Type, int UNITS> struct ValuesOfPage {
    typename Type::Raw raw[UNITS][4];

    WORD void load(const KvHead<Type> &head, int start, int padded) {
#pragma unroll
        for (int w = 0; w < UNITS; w++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                raw[w][i] = Eight<Type>::load(head.row(i / 2 * 8 + i % 2 + 2 * (lane() & 3)), start + 64 * w, padded);
    }
    WORD void hide(const bool (&visible)[4]) {
#pragma unroll
        for (int w = 0; w < UNITS; w++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (!visible[i]) raw[w][i] = Type::zero();
    }
};

// Weights of head g for four tokens as an operand: rows of upper halves, then of lower ones.
WORD uint4 weights_of(float a, float b, float c, float d) {
    uint4 w;
    split_halves(w.x, w.y, a, b);
    split_halves(w.z, w.w, c, d);
    return w;
}

WORD void multiply_tokens(float (&c)[4], const uint4 &w, const u32 (&h)[4][4], int j) {
    const u32 selector = j % 2 ? 0x7632 : 0x5410;
    multiply_halves(c, w.x, w.y, w.z, w.w, __byte_perm(h[0][j / 2], h[1][j / 2], selector),
                    __byte_perm(h[2][j / 2], h[3][j / 2], selector));
}

WORD void add_scaled(float (&c)[4], const float (&d)[4], float factor) {
#pragma unroll
    for (int e = 0; e < 4; e++) c[e] = fmaf(d[e], factor, c[e]);
}

// Weights times the scales that tokens have in a block of channels, and the power that they were brought to size with.
template <class Type>
WORD uint4 scaled_weights(float &factor, const float (&p)[4], const KvHead<Type> &head, int block) {
    float x[4], peak = 0.f;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const u16 scale = block < head.blocks ? head.scales(i / 2 * 8 + i % 2 + 2 * (lane() & 3))[block] : 0;
        x[i] = p[i] == 0.f ? 0.f : p[i] * half_to_float(scale);
        peak = fmaxf(peak, fabsf(x[i]));
    }
    peak = fmaxf(peak, shuffle_xor(peak, 1));
    const Power power = power_for(fmaxf(peak, shuffle_xor(peak, 2)));
    factor = power.factor;
    return weights_of(x[0] * power.inverse, x[1] * power.inverse, x[2] * power.inverse, x[3] * power.inverse);
}

// sums[w][j]: of head g, channels (2t, j) and (2t + 1, j) of unit w, in two rows that belong together.
template <class Type, int UNITS>
WORD void add_page(float (*sums)[8][4], const ValuesOfPage<Type, UNITS> &values, const float (&p)[4],
                   const KvHead<Type> &head, int start) {
    const uint4 plain = weights_of(p[0], p[1], p[2], p[3]);
    Power power = {1.f, 1.f};
    if constexpr (Type::WIDE) power = Wide<Type>::power(values.raw);
#pragma unroll
    for (int w = 0; w < UNITS; w++) {
        u32 h[4][4], lower[4][4];
        uint4 weights = plain;
        float factor = power.factor;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if constexpr (Type::WIDE) Wide<Type>::split(h[i], lower[i], values.raw[w][i], power.inverse);
            else Type::halves(h[i], values.raw[w][i]);
        }
#pragma unroll
        for (int j = 0; j < 8; j++) {
            if constexpr (Type::SCALED)
                if (j % 4 == 0) weights = scaled_weights(factor, p, head, start / 32 + 2 * w + j / 4);
            if constexpr (Type::WIDE || Type::SCALED) {
                float d[4] = {};
                if constexpr (Type::WIDE) multiply_tokens(d, weights, lower, j);
                multiply_tokens(d, weights, h, j);
                add_scaled(sums[w][j], d, factor);
            } else {
                multiply_tokens(sums[w][j], weights, h, j);
            }
        }
    }
}
