// The largest of each 16 logits of a row, so that whoever chooses tokens looks at few.
#pragma once
#include <words.cuh>

// NaN counts for nothing: without anything else, -inf. Strides are floats. A block has 64 tiles.
__global__ void logit_peaks(const float *logits, i64 stride, i64 width, const i32 *count, float *peaks,
                                       i64 peak_stride) {
    let_next_start();
    wait_for_previous();
    const i64 row = blockIdx.x, at = i64(blockIdx.y) * blockDim.x + threadIdx.x;
    if (row >= *count) return;
    const float *from = logits + row * stride;
    float peak = __uint_as_float(0xff800000u);
    for (i64 c = 4 * at; c < width && c < 4 * at + 4; c++) peak = fmaxf(peak, from[c]);
    for (int mask = 1; mask < 4; mask *= 2) peak = fmaxf(peak, shuffle_xor(peak, mask));
    if (at % 4 == 0 && at / 4 < (width + 15) / 16) peaks[row * peak_stride + at / 4] = peak;
}
