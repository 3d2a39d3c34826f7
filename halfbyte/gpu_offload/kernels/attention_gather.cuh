// Sums of warps, and of chunks, in one order: each as floats with its largest score and total weight.
#pragma once
#include <forms.cuh>
#include <attention_walk.cuh>

struct Weight {
    float largest, total;
};

WORD void add_four(float4 &sum, float factor, const float4 &v) {
    sum.x = fmaf(factor, v.x, sum.x), sum.y = fmaf(factor, v.y, sum.y);
    sum.z = fmaf(factor, v.z, sum.z), sum.w = fmaf(factor, v.w, sum.w);
}

WORD float4 times(const float4 &v, float factor) {
    return make_float4(v.x * factor, v.y * factor, v.z * factor, v.w * factor);
}

// What the warps of a block have found, in shared memory. Rows are spread over the banks.
template <int V_UNITS, int WARPS> struct Found {
    static const int ROW = 64 * V_UNITS + 4, FLOATS = WARPS * 8 * (ROW + 2);
    float *sums;     // [WARPS, 8, ROW]
    Weight *weights; // [WARPS, 8]
    WORD Found(float *memory) : sums(memory), weights((Weight *)(memory + WARPS * 8 * ROW)) {}

    template <class W> WORD void put(const W &walk, bool scaled) const {
        const int g = lane() / 4, t = lane() & 3;
        float total = walk.total + shuffle_xor(walk.total, 1);
        total += shuffle_xor(total, 2);
        if (t == 0) weights[8 * warp() + g] = {walk.largest, total};
        float *row = sums + (8 * warp() + g) * ROW;
#pragma unroll
        for (int w = 0; w < V_UNITS; w++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int e = i % 2, j = i / 2 * 4, column = 2 * t + e;
                const float (*s)[4] = walk.sums[w] + j;
                const int channel = 64 * w + (scaled ? 8 * j + 4 * column : 8 * column + j);
                *(float4 *)(row + channel) = make_float4(s[0][e] + s[0][e + 2], s[1][e] + s[1][e + 2],
                                                         s[2][e] + s[2][e + 2], s[3][e] + s[3][e + 2]);
            }
    }
    // Of one head, channels 4c .. 4c + 3.
    WORD float4 get(int head, int c, Weight &weight) const {
        weight = {NOTHING, 0.f};
        for (int w = 0; w < WARPS; w++) weight.largest = fmaxf(weight.largest, weights[8 * w + head].largest);
        float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
        for (int w = 0; w < WARPS; w++) {
            const Weight own = weights[8 * w + head];
            const float factor = exp2f(own.largest - weight.largest);
            weight.total = fmaf(factor, own.total, weight.total);
            add_four(sum, factor, *(const float4 *)(sums + (8 * w + head) * ROW + 4 * c));
        }
        return sum;
    }
};

// What blocks leave for the last one of a token and a group: rows of `columns` floats, a chunk after the other, heads
// within a chunk, and weights in the same order.
struct Left {
    float *rows;
    Weight *weights;
    int heads, columns;

    WORD void put(int chunk, int head, int c, const float4 &sum, const Weight &weight) const {
        const i64 row = i64(chunk) * heads + head;
        *(float4 *)(rows + row * columns + 4 * c) = sum;
        if (c == 0) weights[row] = weight;
    }
    WORD float4 get(int chunks, int head, int c, Weight &weight) const {
        const int BATCH = 8;
        float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
        weight = {NOTHING, 0.f};
        for (int start = 0; start < chunks; start += BATCH) {
            Weight own[BATCH];
            uint4 part[BATCH];
            float largest = weight.largest;
#pragma unroll
            for (int i = 0; i < BATCH; i++) {
                const i64 row = i64(start + i < chunks ? start + i : chunks - 1) * heads + head;
                own[i] = load_fresh_weight(weights + row);
                part[i] = load_fresh((const uint4 *)(rows + row * columns + 4 * c));
                if (start + i >= chunks) own[i] = {NOTHING, 0.f};
                largest = fmaxf(largest, own[i].largest);
            }
            const float before = exp2f(weight.largest - largest);
            sum = times(sum, before);
            weight = {largest, weight.total * before};
#pragma unroll
            for (int i = 0; i < BATCH; i++) {
                const float factor = exp2f(own[i].largest - largest);
                weight.total = fmaf(factor, own[i].total, weight.total);
                add_four(sum, factor,
                         make_float4(__uint_as_float(part[i].x), __uint_as_float(part[i].y), __uint_as_float(part[i].z),
                                     __uint_as_float(part[i].w)));
            }
        }
        return sum;
    }
    static WORD Weight load_fresh_weight(const Weight *at) {
        const uint2 v = load_fresh_8((const uint2 *)at);
        return {__uint_as_float(v.x), __uint_as_float(v.y)};
    }
};
