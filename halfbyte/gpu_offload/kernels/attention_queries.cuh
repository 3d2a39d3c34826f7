// Queries of up to eight heads as operands of matrix instructions, in shared memory.
#pragma once
#include <words.cuh>
#include <powers.cuh>

WORD float4 load_four(const float *x, i64 c, i64 size) {
    if (size % 4 == 0) return c < size ? *(const float4 *)(x + c) : make_float4(0.f, 0.f, 0.f, 0.f);
    return make_float4(c < size ? x[c] : 0.f, c + 1 < size ? x[c + 1] : 0.f, c + 2 < size ? x[c + 2] : 0.f,
                       c + 3 < size ? x[c + 3] : 0.f);
}

// All warps of the block share the work; a barrier must follow. Gives the power of head lane / 4. Heads that are not
// there are zeros.
template <int UNITS, int WARPS>
WORD float place_queries(uint4 *queries, const float *q, int heads, i64 size) {
    const int g = lane() / 4, t = lane() & 3;
    float4 x[UNITS][2];
    float peak = 0.f;
#pragma unroll
    for (int u = 0; u < UNITS; u++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const i64 c = 32 * u + 8 * t + 4 * i;
            x[u][i] = g < heads ? load_four(q + g * size, c, size) : make_float4(0.f, 0.f, 0.f, 0.f);
            const float4 v = x[u][i];
            peak = fmaxf(peak, fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
        }
    peak = fmaxf(peak, shuffle_xor(peak, 1));
    const Power power = power_for(fmaxf(peak, shuffle_xor(peak, 2)));
#pragma unroll
    for (int u = 0; u < UNITS; u++) {
        if (u % WARPS != warp()) continue;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const float4 v = x[u][i];
            uint4 operand;
            split_halves(operand.x, operand.y, v.x * power.inverse, v.y * power.inverse);
            split_halves(operand.z, operand.w, v.z * power.inverse, v.w * power.inverse);
            queries[64 * u + 32 * i + lane()] = operand;
        }
    }
    return power.factor;
}
