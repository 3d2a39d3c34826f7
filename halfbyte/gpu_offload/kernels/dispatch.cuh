// Rows of tokens to where their experts' rows lie, and back.
#pragma once
#include <columns.cuh>
#include <expert_tiles.cuh>

__global__ void dispatch(const float *x, i64 x_stride, i64 width, const i32 *count, const i32 *sources,
                                    float *rows, i64 stride, u8 *planes, Record *records, u16 *halves,
                                    float *half_scales) {
    let_next_start();
    wait_for_previous();
    const i64 row = blockIdx.x;
    if (row >= *count) return;
    store_columns(Forms{rows, planes, records, halves, half_scales}, row, Plain{x + sources[row] * x_stride}, width, stride, blockIdx.y, gridDim.y);
}
