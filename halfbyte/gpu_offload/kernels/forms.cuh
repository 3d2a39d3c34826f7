// Forms of a value that products read, besides floats: bytes in two planes, and halves.
//
// Planes: groups of 32 columns become whole numbers up to 127 * 256 in magnitude, times a scale; number = 256 * upper +
// lower, both signed bytes. Four tokens form a quad: of a quad and a group, lane l = 4g + t of a warp holds 8 bytes,
// columns 4t .. 4t + 3 and 16 + 4t .. 16 + 4t + 3 of token g / 2, upper bytes for even g and lower for odd: what the
// matrix instruction wants. Address: ((quad * groups + group) * 32 + l) * 8; groups are padded to an even number.
// Records: four floats a token and group, in the same order: scale, scaled sum, scaled sums of the two halves.
#pragma once
#include <words.cuh>

struct Forms {
    float *rows;     // [T, stride]
    u8 *planes;
    float4 *records; // [quads, groups, 4]
    u16 *halves;     // [T, columns], times half_scales[t], a power of two
    float *half_scales;
};

WORD i64 padded_groups(i64 columns) { return (columns + 63) / 64 * 2; }

// Lane l of eight holds columns 4l .. 4l + 3 of a group, and stores its share of the planes. All lanes of a warp call it;
// those without a group of their own are not `present`.
WORD void store_group(const Forms &to, i64 token, i64 group, i64 groups, float4 v, bool present) {
    const float largest = 127.f * 256.f;
    float peak = fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
    for (int mask = 1; mask < 8; mask *= 2) peak = fmaxf(peak, shuffle_xor(peak, mask));
    const float inverse = peak > 1e-30f ? largest / peak : 0.f, scale = peak / largest;
    const int l = lane() & 7, t = l & 3, half = l >> 2;
    const i32 q[4] = {__float2int_rn(v.x * inverse), __float2int_rn(v.y * inverse), __float2int_rn(v.z * inverse),
                      __float2int_rn(v.w * inverse)};
    u32 upper = 0, lower = 0;
    for (int i = 0; i < 4; i++) {
        const i32 top = (q[i] + 128) >> 8;
        upper |= u32(u8(top)) << 8 * i;
        lower |= u32(u8(q[i] - 256 * top)) << 8 * i;
    }
    i32 sum = q[0] + q[1] + q[2] + q[3];
    sum += shuffle_xor(sum, 1);
    sum += shuffle_xor(sum, 2);
    const i32 other = shuffle_xor(sum, 4);
    if (!present) return;
    const i64 place = (token / 4 * groups + group) * 32;
    u8 *lanes = to.planes + (place + 8 * (token % 4) + t) * 8 + 4 * half;
    *(u32 *)lanes = upper;
    *(u32 *)(lanes + 32) = lower;
    if (l == 0)
        to.records[place / 8 + token % 4] =
            make_float4(scale, scale * float(sum + other), scale * float(sum), scale * float(other));
}

// All threads of a block store a row of `width` floats that lies in shared memory, in every form that has an address.
// Columns behind it are zero in the planes.
WORD void store_row(const Forms &to, i64 token, const float *row, i64 width, i64 stride) {
    if (to.rows)
        for (i64 c = threadIdx.x; c < width; c += blockDim.x) to.rows[token * stride + c] = row[c];
    if (to.planes) {
        const i64 groups = padded_groups(width);
        for (i64 at = threadIdx.x; at < (groups * 8 + 31) / 32 * 32; at += blockDim.x) {
            const i64 c = 4 * at;
            float4 v = make_float4(c < width ? row[c] : 0.f, c + 1 < width ? row[c + 1] : 0.f,
                                   c + 2 < width ? row[c + 2] : 0.f, c + 3 < width ? row[c + 3] : 0.f);
            store_group(to, token, at / 8, groups, v, at / 8 < groups);
        }
    }
    if (to.halves) {
        __shared__ float peaks[32];
        float peak = 0.f;
        for (i64 c = threadIdx.x; c < width; c += blockDim.x) peak = fmaxf(peak, fabsf(row[c]));
        for (int mask = 16; mask; mask /= 2) peak = fmaxf(peak, shuffle_xor(peak, mask));
        if (lane() == 0) peaks[warp()] = peak;
        __syncthreads();
        for (int i = 0; i < int(blockDim.x) / 32; i++) peak = fmaxf(peak, peaks[i]);
        // The power of two above the peak: what is stored lies below 1, where halves have all their bits.
        const u32 exponent = (__float_as_uint(peak) >> 23 & 0xff) + 1;
        const bool plain = exponent > 2 && exponent < 252;
        const float scale = plain ? __uint_as_float(exponent << 23) : 1.f;
        const float inverse = plain ? __uint_as_float((254 - exponent) << 23) : 1.f;
        for (i64 c = threadIdx.x; c < width; c += blockDim.x)
            to.halves[token * width + c] = float_to_half(row[c] * inverse);
        if (threadIdx.x == 0) to.half_scales[token] = scale;
    }
}

// A row of floats to its other forms: one block a row.
__global__ void make_forms(const float *x, i64 stride, i64 width, const i32 *count, u8 *planes,
                                      float4 *records, u16 *halves, float *half_scales) {
    DYNAMIC_SHARED(shared);
    float *row = (float *)shared;
    let_next_start();
    wait_for_previous();
    const i64 token = blockIdx.x;
    if (token >= *count) return;
    for (i64 c = threadIdx.x; c < width; c += blockDim.x) row[c] = x[token * stride + c];
    __syncthreads();
    store_row(Forms{nullptr, planes, records, halves, half_scales}, token, row, width, stride);
}
