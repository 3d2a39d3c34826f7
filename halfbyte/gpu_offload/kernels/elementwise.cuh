// Ops that take a column of each row by itself; a row is shared by as many blocks as the grid is high.
#pragma once
#include <columns.cuh>
#include <gated.cuh>
#include <step.cuh>

// `Function::of` of two rows; where it takes one, both are the same.
template <class Function> struct Of {
    const float *a, *b;
    float factor;
    WORD float operator[](int c) const { return Function::of(a[c], b[c], factor); }
    WORD float4 four(int c) const {
        const float4 u = *(const float4 *)(a + c), v = *(const float4 *)(b + c);
        return make_float4(Function::of(u.x, v.x, factor), Function::of(u.y, v.y, factor),
                           Function::of(u.z, v.z, factor), Function::of(u.w, v.w, factor));
    }
};

template <class Function>
__global__ void elementwise(const float *a, i64 a_stride, const float *b, i64 b_stride, float factor, i64 width,
                            const i32 *count, float *rows, i64 stride, u8 *planes, Record *records, u16 *halves,
                            float *half_scales) {
    let_next_start();
    wait_for_previous();
    const i64 token = blockIdx.x;
    if (token >= *count) return;
    const Of<Function> row{a + token * a_stride, b + token * b_stride, factor};
    store_columns(Forms{rows, planes, records, halves, half_scales}, token, row, width, stride, blockIdx.y, gridDim.y);
}

// What `b` holds counts for nothing where the sequence asks for none of it.
struct WithAdapter {
    static WORD float of(float a, float b, float scale) { return scale == 0.f ? a : a + scale * b; }
};

__global__ void add_scaled(const float *a, i64 a_stride, const float *b, i64 b_stride, float factor,
                                      i64 adapter, i64 asked, i64 width, const Step *step, float *rows, i64 stride,
                                      u8 *planes, Record *records, u16 *halves, float *half_scales) {
    let_next_start();
    wait_for_previous();
    const i64 token = blockIdx.x;
    if (token >= count_of(step, asked)) return;
    const i64 sequence = step->seq_of[asked ? step->logit_rows[token] : token];
    const float scale = adapter < step->adapters ? step->adapter_scales[sequence * step->adapters + adapter] : 0.f;
    // Not times the factor first: an infinite one makes NaN of a zero.
    const Of<WithAdapter> row{a + token * a_stride, b + token * b_stride, scale == 0.f ? 0.f : scale * factor};
    store_columns(Forms{rows, planes, records, halves, half_scales}, token, row, width, stride, blockIdx.y, gridDim.y);
}

__global__ void take_rows(const float *x, i64 x_stride, i64 width, const Step *step, float *rows, i64 stride,
                                     u8 *planes, Record *records, u16 *halves, float *half_scales) {
    let_next_start();
    wait_for_previous();
    const i64 row = blockIdx.x;
    if (row >= step->rows) return;
    store_columns(Forms{rows, planes, records, halves, half_scales}, row, Plain{x + step->logit_rows[row] * x_stride},
                  width, stride, blockIdx.y, gridDim.y);
}
