// A short filter of each channel over what the last tokens left in the pages.
#pragma once
#include <words.cuh>
#include <forms.cuh>
#include <kv_types.cuh>
#include <step.cuh>

// One block a token; weight [width, taps], the last tap is the token's own. Taps from before the sequence count nothing.
template <class Type>
__global__ void short_conv(const Step *step, const float *weight, i64 taps, u8 *pages, i64 page_bytes, i64 values_at,
                           i64 kv_heads, i64 value_size, float *rows, i64 stride, u8 *planes, Record *records, u16 *halves,
                           float *half_scales) {
    DYNAMIC_SHARED(shared);
    float *row = (float *)shared;
    let_next_start();
    wait_for_previous();
    const i64 token = blockIdx.x, width = kv_heads * value_size;
    if (token >= step->tokens) return;
    const int position = step->positions[token];
    const i32 *table = step->page_table + i64(step->seq_of[token]) * step->max_pages;
    for (i64 c = threadIdx.x; c < width; c += blockDim.x) {
        float sum = 0.f;
        for (int j = 0; j < taps; j++) {
            const int at = position - int(taps) + 1 + j;
            if (at < 0) continue;
            const KvHead<Type> head(pages + table[at / 16] * page_bytes + values_at, c / value_size, value_size);
            sum += weight[c * taps + j] * head.value(at % 16, c % value_size);
        }
        row[c] = sum;
    }
    __syncthreads();
    store_row(Forms{rows, planes, records, halves, half_scales}, token, row, width, stride);
}
