// Rows of a table that is packed as matrices are.
#pragma once
#include <decode.cuh>
#include <forms.cuh>
#include <step.cuh>

// out[t] = factor * table[ids[t]], or of positions[t]: one block a token, with room for a row in shared memory.
template <class F>
__global__ void embed(const u8 *table, i64 columns, float factor, const Step *step, i64 by_position, float *rows,
                      i64 stride, u8 *planes, Record *records, u16 *halves, float *half_scales) {
    DYNAMIC_SHARED(room);
    float *row = (float *)room;
    let_next_start();
    wait_for_previous();
    const i64 token = blockIdx.x;
    if (token >= step->tokens) return;
    decode_row<F>(row, table, by_position ? step->positions[token] : step->ids[token], columns);
    __syncthreads();
    // By the thread that stores it, so that one barrier does for both.
    for (i64 c = threadIdx.x; c < columns; c += blockDim.x) row[c] *= factor;
    __syncthreads();
    store_row(Forms{rows, planes, records, halves, half_scales}, token, row, columns, stride);
}
