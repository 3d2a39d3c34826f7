// The choice of experts, a block a token.
#pragma once
#include <sums.cuh>

// The order of scores as whole numbers: what is no number comes last, zeros are alike.
WORD u32 rank_of(float score) {
    if (score != score) return 0;
    const u32 bits = __float_as_uint(score + 0.f);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

// Whether an expert is among the first `used`, of equals the lower number first.
WORD bool is_chosen(const u32 *ranks, i64 expert, i64 experts, i64 used) {
    const u32 rank = ranks[expert];
    int better = 0;
    for (int e = 0; e < experts; e++) better += ranks[e] > rank || (ranks[e] == rank && e < expert);
    return better < used;
}

template <bool SOFTMAX> WORD float gated_by(float score, float peak) {
    return SOFTMAX ? expf(score - peak) : 1.f / (1.f + expf(-score));
}

// out [T, 2 * used]: the numbers of the chosen, ascending, and their weights.
template <bool SOFTMAX>
__global__ void route(const float *x, i64 stride, i64 experts, i64 used, i64 normalise, float scale, const i32 *count,
                      float *out, i64 out_stride) {
    DYNAMIC_SHARED(shared);
    u32 *ranks = (u32 *)shared, *chosen = ranks + experts;
    float *weights = (float *)(chosen + experts), *numbers = out + blockIdx.x * out_stride;
    let_next_start();
    wait_for_previous();
    if (blockIdx.x >= *count) return;
    const float *scores = x + blockIdx.x * stride;
    float peak = __uint_as_float(0xff800000u), sum = 0.f; // from -inf on
    for (int e = threadIdx.x; e < experts; e += blockDim.x) {
        ranks[e] = rank_of(scores[e]);
        peak = fmaxf(peak, scores[e]);
    }
    peak = over_block<Largest>(peak);
    for (int e = threadIdx.x; SOFTMAX && e < experts; e += blockDim.x) sum += gated_by<SOFTMAX>(scores[e], peak);
    const float all = SOFTMAX ? over_block<Sum>(sum) : 1.f;
    for (int e = threadIdx.x; e < experts; e += blockDim.x) chosen[e] = is_chosen(ranks, e, experts, used);
    __syncthreads();
    for (int e = threadIdx.x; e < experts; e += blockDim.x) {
        if (!chosen[e]) continue;
        int place = 0;
        for (int lower = 0; lower < e; lower++) place += chosen[lower];
        numbers[place] = float(e);
        weights[place] = gated_by<SOFTMAX>(scores[e], peak) / all;
    }
    __syncthreads();
    for (int j = threadIdx.x; j < used; j += blockDim.x) {
        float of_chosen = 0.f;
        for (int i = 0; i < used; i++) of_chosen += weights[i];
        numbers[used + j] = (normalise ? weights[j] / of_chosen : weights[j]) * scale;
    }
}
