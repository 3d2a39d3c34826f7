// What a library's product of halves lacks.
#pragma once
#include <words.cuh>

// Rows of a product of halves: times the scale of x's row, plus what else there is; where nothing is, nothing is done.
__global__ void finish_product(const float *product, i64 rows, const float *half_scales, const i32 *count, float *out,
                               i64 stride, const float *bias, const float *residual) {
    let_next_start();
    wait_for_previous();
    const i64 token = blockIdx.x;
    if (token >= *count) return;
    const float scale = half_scales[token];
    if (scale == 1.f && !bias && !residual && product == out) return;
    for (i64 n = threadIdx.x; n < rows; n += blockDim.x) {
        float v = product[token * rows + n] * scale;
        if (bias) v += bias[n];
        if (residual) v += residual[token * stride + n];
        out[token * stride + n] = v;
    }
}
