// Products of matrices of plain floats with few tokens.
#pragma once
#include <floats.cuh>

// A warp a row; x stays what it is. Lane l takes 4l .. 4l + 3 of every 128 columns, so that sums are cut the same way
// however many tokens a block has.
template <class F, int TOKENS>
__global__ void linear_floats(const u8 *weights, i64 rows, i64 columns, const float *x, i64 x_stride, const i32 *count,
                              float *out, i64 stride, const float *bias, const float *residual) {
    let_next_start();
    wait_for_previous();
    const i64 row = i64(blockIdx.x) * (blockDim.x / 32) + warp(), first = i64(blockIdx.y) * TOKENS, tokens = *count;
    if (row >= rows || first >= tokens) return;
    float sums[TOKENS] = {};
    for (i64 c = 4 * lane(); c < columns; c += 128) {
        const int n = int(min(columns - c, i64(4)));
        float w[4] = {};
        for (int i = 0; i < n; i++) w[i] = F::at(weights, row * columns + c + i);
#pragma unroll
        for (int t = 0; t < TOKENS; t++) {
            const float *from = x + min(first + t, tokens - 1) * x_stride + c;
            for (int i = 0; i < n; i++) sums[t] = fmaf(w[i], from[i], sums[t]);
        }
    }
#pragma unroll
    for (int t = 0; t < TOKENS; t++) {
        float sum = sums[t];
        for (int mask = 16; mask; mask /= 2) sum += shuffle_xor(sum, mask);
        const i64 at = (first + t) * stride + row;
        if (lane() || first + t >= tokens) continue;
        if (bias) sum += bias[row];
        if (residual) sum += residual[at];
        out[at] = sum;
    }
}
