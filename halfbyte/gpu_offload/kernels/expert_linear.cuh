// Products of the matrices of experts with the rows that a plan gives each: as linear.cuh has them, with plain floats too.
#pragma once
#include <expert_tiles.cuh>
#include <floats.cuh>
#include <linear.cuh>
#include <sums.cuh>

// Matrices of experts one behind the other; `bias` is [experts, rows].
struct ExpertMatrix {
    const u8 *weights;
    i64 bytes, rows;
    float *out;
    i64 stride;
    const float *bias;
    WORD Matrix of(i64 expert) const {
        return {weights + expert * bytes, rows, out, stride, bias ? bias + expert * rows : bias};
    }
};

// Grid: (any number of blocks, tiles of the plan, rows of one / (4 * QUADS)). What is fetched is known only when the plan may be read.
template <class F, int QUADS, int SPLIT, int STAGES, bool HELD>
__global__ void __launch_bounds__(32 * WARPS)
    expert_linear(const ExpertTiles *plan, const u8 *w0, i64 bytes0, i64 n0, float *out0, i64 stride0, const float *bias0,
                  const u8 *w1, i64 bytes1, i64 n1, float *out1, i64 stride1, const float *bias1, const u8 *planes,
                  const Record *records, i64 columns) {
    DYNAMIC_SHARED(shared);
    let_next_start();
    wait_for_previous();
    if (blockIdx.y >= plan->count) return;
    const ExpertTile work = plan->tiles()[blockIdx.y];
    const int first = work.first + int(blockIdx.z) * 4 * QUADS, end = work.first + work.rows;
    if (first >= end) return;
    const ExpertMatrix m0 = {w0, bytes0, n0, out0, stride0, bias0}, m1 = {w1, bytes1, n1, out1, stride1, bias1};
    __shared__ Matrix matrices[MATRICES];
    if (threadIdx.x == 0) {
        matrices[0] = m0.of(work.expert);
        matrices[1] = m1.of(work.expert);
        matrices[2] = {};
    }
    __syncthreads();
    const int steps = steps_of<F>(columns);
    const Tiles tiles(matrices, nullptr, blockIdx.x, gridDim.x, SPLIT);
    Fetch<F, SPLIT, STAGES, HELD, side_by_side<QUADS, HELD>()> fetch(tiles, steps, shared);
    const Columns<QUADS> x(planes, records, padded_units(columns), first, end);
    float *parts = (float *)(shared + WARPS * STAGES * Unit<F>::BYTES);
    multiply_tiles<F, QUADS, SPLIT, STAGES, HELD, side_by_side<QUADS, HELD>()>(tiles, fetch, x, steps, parts, first, end);
}

// --- matrices of plain floats -------------------------------------------------------------------------------------------

// A row of a matrix times up to MOST rows of x, a warp together; lane r gets the sum of row r.
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

// Grid: (rows of the matrix a warp each, tiles of the plan).
template <class F>
__global__ void expert_floats(const ExpertTiles *plan, const u8 *weights, i64 bytes, i64 rows, float *out, i64 stride,
                              const float *bias, const float *x, i64 x_stride, i64 columns) {
    let_next_start();
    wait_for_previous();
    const i64 n = i64(blockIdx.x) * (blockDim.x / 32) + warp();
    if (blockIdx.y >= plan->count || n >= rows) return;
    const ExpertTile work = plan->tiles()[blockIdx.y];
    const Matrix m = ExpertMatrix{weights, bytes, rows, out, stride, bias}.of(work.expert);
    const float *first = x + work.first * x_stride;
    const float sum = times_rows<F, 16>(m.weights, n, first, x_stride, int(columns), work.rows);
    if (lane() < work.rows) m.out[(work.first + lane()) * stride + n] = m.bias ? sum + m.bias[n] : sum;
}
