// One page under up to eight query heads, by one warp: scores, and what the values add.
//
// Queries and weights are split into two halves, which rows 0 .. 7 and 8 .. 15 of one matrix instruction multiply: sums
// are as good as those of floats. With g = lane / 4 and t = lane % 4 a lane loads channels 32u + 8t .. + 7 of the keys of
// tokens g and 8 + g, and for the values of tokens 2t, 2t + 1, 8 + 2t and 9 + 2t eight channels of every 64. The order of
// channels within an instruction is free, as long as both sides have the same: so they stand as they were loaded.
#pragma once
#include <words.cuh>
#include <kv_types.cuh>
#include <powers.cuh>

template <class Type, int UNITS> struct KeysOfPage {
    typename Type::Raw raw[UNITS][2];

    WORD void load(const KvHead<Type> &head, int start, int padded) {
#pragma unroll
        for (int u = 0; u < UNITS; u++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int channel = start + 32 * u + 8 * (lane() & 3);
                raw[u][i] = channel < padded ? Type::load(head.row(8 * i + lane() / 4), channel) : Type::zero();
            }
    }
    // Of a page that is not visible as a whole: what else it holds may be anything.
    WORD void hide(const bool (&visible)[2]) {
#pragma unroll
        for (int u = 0; u < UNITS; u++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (!visible[i]) raw[u][i] = Type::zero();
    }
};

template <class Type> struct Wide;

// Floats of a page as two halves each, all brought to size by one power.
template <> struct Wide<KvF32> {
    template <int A, int B> static WORD Power power(const KvF32Raw (&raw)[A][B]) {
        float peak = 0.f, f[8];
#pragma unroll
        for (int a = 0; a < A; a++)
#pragma unroll
            for (int b = 0; b < B; b++) {
                KvF32::floats(f, raw[a][b]);
#pragma unroll
                for (int i = 0; i < 8; i++) peak = fmaxf(peak, fabsf(f[i]));
            }
        for (int mask = 16; mask; mask /= 2) peak = fmaxf(peak, shuffle_xor(peak, mask));
        return power_for(peak);
    }
    static WORD void split(u32 (&upper)[4], u32 (&lower)[4], const KvF32Raw &raw, float inverse) {
        float f[8];
        KvF32::floats(f, raw);
#pragma unroll
        for (int i = 0; i < 4; i++) split_halves(upper[i], lower[i], f[2 * i] * inverse, f[2 * i + 1] * inverse);
    }
};

WORD void multiply_pair(float (&c)[4], const uint4 &first, const uint4 &second, const u32 (&h)[4]) {
    multiply_halves(c, first.x, first.y, first.z, first.w, h[0], h[1]);
    multiply_halves(c, second.x, second.y, second.z, second.w, h[2], h[3]);
}

// Adds to the scores of head g with tokens 2t, 2t + 1, 8 + 2t and 9 + 2t, in units of the query's power.
template <class Type, int UNITS>
WORD void score_page(float (&scores)[4], const KeysOfPage<Type, UNITS> &keys, const KvHead<Type> &head, int start,
                     int padded, const uint4 *queries) {
    float c[2][4] = {};
    Power power = {1.f, 1.f};
    if constexpr (Type::WIDE) power = Wide<Type>::power(keys.raw);
#pragma unroll
    for (int u = 0; u < UNITS; u++) {
        if (start + 32 * u >= padded) break;
        const uint4 *query = queries + 2 * start + 64 * u + lane();
        const uint4 first = query[0], second = query[32];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            u32 h[4];
            if constexpr (Type::WIDE) {
                u32 lower[4];
                Wide<Type>::split(h, lower, keys.raw[u][i], power.inverse);
                multiply_pair(c[i], first, second, lower);
                multiply_pair(c[i], first, second, h);
            } else if constexpr (Type::SCALED) {
                float d[4] = {};
                Type::halves(h, keys.raw[u][i]);
                multiply_pair(d, first, second, h);
                for (int e = 0; e < 2; e++) {
                    const float scale = half_to_float(head.scales(8 * i + 2 * (lane() & 3) + e)[start / 32 + u]);
                    c[i][e] = fmaf(d[e] + d[e + 2], scale, c[i][e]);
                }
            } else {
                Type::halves(h, keys.raw[u][i]);
                multiply_pair(c[i], first, second, h);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) scores[i] += (c[i / 2][i % 2] + c[i / 2][i % 2 + 2]) * power.factor;
}
