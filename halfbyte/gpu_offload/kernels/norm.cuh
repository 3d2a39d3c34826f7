// Norms of rows, one block a row: of what is read, or of the sum of two rows, which is then stored along.
#pragma once
#include <columns.cuh>
#include <sums.cuh>

struct Normed {
    const float *x, *residual;
    i64 stride, residual_stride, width;
};

// A row into shared memory, with zeros up to a multiple of four. Gives each thread its share of the row's sum, or of that
// of the squares.
template <bool SQUARES> WORD float fetch_row(float *row, const Normed &from, i64 token, float *sum) {
    const Plain x{from.x + token * from.stride}, residual{from.residual + token * from.residual_stride};
    const int width = int(from.width);
    float share = 0.f;
    for (int c = 4 * threadIdx.x; c < width; c += 4 * blockDim.x) {
        float4 v = four_of(x, c, width);
        if (from.residual) {
            const float4 r = four_of(residual, c, width);
            v = make_float4(v.x + r.x, v.y + r.y, v.z + r.z, v.w + r.w);
            if (sum) store_four(sum, c, width, v);
        }
        *(float4 *)(row + c) = v;
        if (SQUARES)
            share = fmaf(v.w, v.w, fmaf(v.z, v.z, fmaf(v.y, v.y, fmaf(v.x, v.x, share))));
        else
            share += (v.x + v.y) + (v.z + v.w);
    }
    return share;
}

// What a norm works on, and where results go.
struct Norm {
    Normed from;
    float *sum;
    i64 sum_stride;
    const float *bias;
    float eps;
    Forms to;
    i64 out_stride;
};

// A block norms row `token`, which it holds in `row`; `weight` is there by then.
template <bool CENTRED> WORD void norm_row(const Norm &norm, i64 token, float *row, const float *weight, bool fetched) {
    const i64 width = norm.from.width;
    float mean = 0.f, share = fetch_row<!CENTRED>(row, norm.from, token, norm.sum ? norm.sum + token * norm.sum_stride : nullptr);
    if (fetched) wait_for_copies<0>();
    float squares = over_block<Sum>(share);
    if (CENTRED) {
        mean = squares / float(width), share = 0.f;
        // The same columns a thread as before: a block of more threads adds up alike.
        for (int c = 4 * threadIdx.x; c < width; c += 4 * blockDim.x)
            for (int i = c; i < width && i < c + 4; i++) share = fmaf(row[i] - mean, row[i] - mean, share);
        squares = over_block<Sum>(share);
    }
    const float inverse = 1.f / sqrtf(squares / float(width) + norm.eps);
    for (int c = threadIdx.x; c < width; c += blockDim.x) {
        const float v = (row[c] - mean) * inverse * weight[c];
        row[c] = norm.bias ? v + norm.bias[c] : v;
    }
    __syncthreads();
    store_row(norm.to, token, row, width, norm.out_stride);
}

// `early`: the weight is fetched to shared memory, where it has room behind the row, while the kernel before still runs.
template <bool CENTRED>
__global__ void norm(const float *x, i64 stride, const float *residual, i64 residual_stride, float *sum, i64 sum_stride,
                     const float *weight, const float *bias, float eps, i64 width, i64 early, const i32 *count,
                     float *rows, i64 out_stride, u8 *planes, Record *records, u16 *halves, float *half_scales) {
    DYNAMIC_SHARED(shared);
    float *row = (float *)shared, *fetched = row + (width + 3) / 4 * 4;
    let_next_start();
    for (int c = 4 * threadIdx.x; early && c < width; c += 4 * blockDim.x) begin_copy_16(fetched + c, weight + c);
    commit_copies();
    wait_for_previous();
    if (blockIdx.x >= *count) {
        wait_for_copies<0>();
        return;
    }
    const Norm norm = {{x, residual, stride, residual_stride, width}, sum, sum_stride, bias, eps,
                       {rows, planes, records, halves, half_scales}, out_stride};
    norm_row<CENTRED>(norm, blockIdx.x, row, early ? fetched : weight, early);
}

// Every one of `groups` equal parts by itself, a warp a part, all with the same weight.
__global__ void norm_groups(const float *x, i64 stride, const float *weight, float eps, i64 width, i64 groups,
                                       const i32 *count, float *rows, i64 out_stride, u8 *planes, Record *records,
                                       u16 *halves, float *half_scales) {
    DYNAMIC_SHARED(shared);
    float *row = (float *)shared;
    let_next_start();
    wait_for_previous();
    const i64 token = blockIdx.x, size = width / groups;
    if (token >= *count) return;
    fetch_row<true>(row, Normed{x, nullptr, stride, 0, width}, token, nullptr);
    __syncthreads();
    for (int g = warp(); g < groups; g += blockDim.x / 32) {
        float *part = row + g * size, squares = 0.f;
        for (int c = lane(); c < size; c += 32) squares = fmaf(part[c], part[c], squares);
        const float inverse = 1.f / sqrtf(over_warp<Sum>(squares) / float(size) + eps);
        for (int c = lane(); c < size; c += 32) part[c] = part[c] * inverse * weight[c];
    }
    __syncthreads();
    store_row(Forms{rows, planes, records, halves, half_scales}, token, row, width, out_stride);
}
