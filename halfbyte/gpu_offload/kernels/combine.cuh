// What the experts of a token say, each times its weight, in ascending order of the experts.
#pragma once
#include <columns.cuh>

struct Weighed {
    const float *x, *weights, *residual;
    const i32 *places;
    i64 stride, used;
    WORD float operator[](int c) const {
        float sum = 0.f;
        for (int j = 0; j < used; j++) sum += weights[j] * x[places[j] * stride + c];
        return residual ? residual[c] + sum : sum;
    }
    WORD float4 four(int c) const {
        float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
        for (int j = 0; j < used; j++) {
            const float4 v = *(const float4 *)(x + places[j] * stride + c);
            const float w = weights[j];
            sum = make_float4(sum.x + w * v.x, sum.y + w * v.y, sum.z + w * v.z, sum.w + w * v.w);
        }
        if (!residual) return sum;
        const float4 r = *(const float4 *)(residual + c);
        return make_float4(r.x + sum.x, r.y + sum.y, r.z + sum.z, r.w + sum.w);
    }
};

// `residual` may be none.
__global__ void combine(const float *x, i64 x_stride, const float *route, i64 route_stride, i64 used,
                                   const i32 *places, const float *residual, i64 residual_stride, i64 width,
                                   const i32 *count, float *rows, i64 stride, u8 *planes, Record *records, u16 *halves,
                                   float *half_scales) {
    let_next_start();
    wait_for_previous();
    const i64 token = blockIdx.x;
    if (token >= *count) return;
    const Weighed row{x, route + token * route_stride + used, residual ? residual + token * residual_stride : residual,
                      places + token * used, x_stride, used};
    store_columns(Forms{rows, planes, records, halves, half_scales}, token, row, width, stride, blockIdx.y, gridDim.y);
}
