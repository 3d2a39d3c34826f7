// A head as attention wants it: normed where the model does so, then turned by its position.
#pragma once
#include <words.cuh>
#include <turns.cuh>

struct Turns {
    const float2 *pairs; // cosine and sine of each pair
    i64 n_pairs;
    bool neighbours; // pairs are (2i, 2i + 1), not (i, i + n_pairs)
};

// Cosines and sines of a position in shared memory, times `magnitude`; a barrier must follow.
WORD void fill_turns(float2 *pairs, const u64 *turns, i64 n_pairs, i64 position, float magnitude) {
    for (i64 i = threadIdx.x; i < n_pairs; i += blockDim.x) {
        const float2 pair = cosine_and_sine(u64(position) * turns[i]);
        pairs[i] = make_float2(pair.x * magnitude, pair.y * magnitude);
    }
}

struct Head {
    const float *x, *weight; // without a weight it is not normed
    float root;
    WORD float normed(i64 c) const { return weight ? x[c] / root * weight[c] : x[c]; }
};

// All lanes of a warp call it.
WORD Head head_of(const float *x, i64 size, const float *weight, float eps) {
    float sum = 0.f;
    if (weight) {
        for (i64 c = lane(); c < size; c += 32) sum = fmaf(x[c], x[c], sum);
        for (int mask = 16; mask; mask /= 2) sum += shuffle_xor(sum, mask);
    }
    return {x, weight, sqrtf(sum / float(size) + eps)};
}

WORD float turned(const Head &head, const Turns &turns, i64 c) {
    if (c >= 2 * turns.n_pairs) return head.normed(c);
    const i64 n = turns.n_pairs;
    const bool first = turns.neighbours ? c % 2 == 0 : c < n;
    const float2 pair = turns.pairs[turns.neighbours ? c / 2 : first ? c : c - n];
    const float own = head.normed(c), other = head.normed(turns.neighbours ? c ^ 1 : first ? c + n : c - n);
    return first ? own * pair.x - other * pair.y : other * pair.y + own * pair.x;
}
