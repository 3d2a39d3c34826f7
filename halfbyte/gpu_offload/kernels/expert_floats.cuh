// Products of plain floats of experts with the rows that a plan gives each.
#pragma once
#include <expert_tiles.cuh>
#include <floats.cuh>
#include <sums.cuh>

// A row of a matrix times up to MOST rows of x, a warp together; the first lanes have a sum each.
template <class F, int MOST>
WORD float times_rows(const u8 *matrix, i64 row, const float *x, i64 stride, int columns, int rows) {
    float sums[MOST] = {}, mine = 0.f;
    for (int c = lane(); c < columns; c += 32) {
        const float w = F::at(matrix, row * columns + c);
#pragma unroll
        for (int r = 0; r < MOST; r++)
            if (r < rows) sums[r] = fmaf(w, x[r * stride + c], sums[r]);
    }
#pragma unroll
    for (int r = 0; r < MOST; r++) {
        if (r >= rows) break;
        const float sum = over_warp<Sum>(sums[r]);
        if (lane() == r) mine = sum;
    }
    return mine;
}

// Grid: (rows of the matrix a warp each, tiles of the plan). The matrices of experts lie one behind the other, and so do
// their biases.
template <class F>
__global__ void expert_floats(const ExpertTiles *plan, const u8 *weights, i64 bytes, i64 rows, float *out, i64 stride,
                              const float *bias, const float *x, i64 x_stride, i64 columns) {
    let_next_start();
    wait_for_previous();
    const i64 n = i64(blockIdx.x) * (blockDim.x / 32) + warp();
    if (blockIdx.y >= plan->count || n >= rows) return;
    const ExpertTile work = plan->tiles()[blockIdx.y];
    const float *first = x + work.first * x_stride;
    const float sum = times_rows<F, 16>(weights + work.expert * bytes, n, first, x_stride, int(columns), work.rows);
    if (lane() < work.rows)
        out[(work.first + lane()) * stride + n] = bias ? sum + bias[work.expert * rows + n] : sum;
}
