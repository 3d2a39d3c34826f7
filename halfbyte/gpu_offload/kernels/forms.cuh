// Forms of a value that products read, besides floats: bytes in two planes, and halves.
//
// Planes: units of 256 columns become whole numbers up to 127 * 256 in magnitude, times a scale; number = 256 * upper +
// lower, both signed bytes. Four tokens form a quad: of a quad and a group of 32 columns, lane l = 4g + t of a warp holds
// 8 bytes, columns 4t .. 4t + 3 and 16 + 4t .. 16 + 4t + 3 of token g / 2, upper bytes for even g and lower for odd: what
// the matrix instruction wants. Address: ((quad * groups + group) * 32 + l) * 8; groups are padded to whole units.
// Records: one a token and unit, in the order quad, unit, token of the quad.
#pragma once
#include <words.cuh>

struct __align__(16) Record {
    i32 sums[8];      // of the whole numbers of each group
    i8 halves[3][16]; // of those of each half of a group, to the base 256 in signed digits, the lowest first
    i8 groups[3][8];  // `sums` likewise
    float scale;
    i32 unused[5];
};

template <int N> WORD void store_digits(i8 (&digits)[3][N], int at, i32 sum) {
    const i32 lowest = i32(i8(sum)), rest = (sum - lowest) >> 8, middle = i32(i8(rest));
    digits[0][at] = i8(lowest), digits[1][at] = i8(middle), digits[2][at] = i8((rest - middle) >> 8);
}

struct Forms {
    float *rows; // [T, stride]
    u8 *planes;
    Record *records; // [quads, units, 4]
    u16 *halves;     // [T, columns], times half_scales[t], a power of two
    float *half_scales;
};

WORD int padded_units(i64 columns) { return int(columns + 255) / 256; }

WORD float largest_of(float4 v) { return fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))); }

// A warp makes bytes of a unit: lane l holds columns 4l .. 4l + 3 and 128 + 4l .. 128 + 4l + 3. Those of a group lie
// `group_bytes` behind those of the group before.
WORD void store_numbers(u8 *bytes, int group_bytes, Record *record, float4 first, float4 second) {
    const float largest = 127.f * 256.f;
    float peak = fmaxf(largest_of(first), largest_of(second));
#pragma unroll
    for (int mask = 16; mask; mask /= 2) peak = fmaxf(peak, shuffle_xor(peak, mask));
    const float inverse = peak > 1e-30f ? largest / peak : 0.f;
    if (lane() == 0) record->scale = peak / largest;
    const int t = lane() & 3, half = lane() >> 2 & 1, group = lane() >> 3;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const float4 v = i ? second : first;
        const i32 q[4] = {__float2int_rn(v.x * inverse), __float2int_rn(v.y * inverse), __float2int_rn(v.z * inverse),
                          __float2int_rn(v.w * inverse)};
        u32 upper = 0, lower = 0;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const i32 top = (q[k] + 128) >> 8;
            upper |= u32(u8(top)) << 8 * k;
            lower |= u32(u8(q[k] - 256 * top)) << 8 * k;
        }
        u8 *lanes = bytes + (group + 4 * i) * group_bytes + 8 * t + 4 * half;
        *(u32 *)lanes = upper;
        *(u32 *)(lanes + 32) = lower;
        i32 sum = q[0] + q[1] + q[2] + q[3];
        sum += shuffle_xor(sum, 1);
        sum += shuffle_xor(sum, 2);
        if (t == 0) store_digits(record->halves, 2 * (group + 4 * i) + half, sum);
        sum += shuffle_xor(sum, 4);
        if ((lane() & 7) == 0) {
            record->sums[group + 4 * i] = sum;
            store_digits(record->groups, group + 4 * i, sum);
        }
    }
}

// The same into the planes.
WORD void store_unit(const Forms &to, int token, int unit, int units, float4 first, float4 second) {
    const i64 place = i64(token / 4) * units + unit;
    store_numbers(to.planes + place * 2048 + 64 * (token % 4), 256, to.records + place * 4 + token % 4, first, second);
}

WORD float4 four_of(const float *row, int column, int width) {
    if (column + 3 < width) return *(const float4 *)(row + column);
    return make_float4(column < width ? row[column] : 0.f, column + 1 < width ? row[column + 1] : 0.f,
                       column + 2 < width ? row[column + 2] : 0.f, 0.f);
}

// The planes of units `from`, `from + step` .. of a row of `width` floats, aligned to 16 bytes; zeros behind it. Whole
// warps take unit after unit.
template <class Row> WORD void store_planes(const Forms &to, int token, const Row &row, int width, int from, int step) {
    const int units = padded_units(width);
    for (int unit = from; unit < units; unit += step) {
        const int c = 256 * unit + 4 * lane();
        store_unit(to, token, unit, units, four_of(row, c, width), four_of(row, c + 128, width));
    }
}

// All threads of a block store a row of `width` floats, in every form that has an address: one that lies in shared memory,
// or one that computes what it is asked for. Columns behind it are zero in the planes.
template <class Row> WORD void store_row(const Forms &to, i64 token, const Row &row, i64 width, i64 stride) {
    if (to.rows)
        for (int c = threadIdx.x; c < width; c += blockDim.x) to.rows[token * stride + c] = row[c];
    if (to.planes) store_planes(to, int(token), row, int(width), warp(), blockDim.x / 32);
    if (to.halves) {
        __shared__ float peaks[32];
        float peak = 0.f;
        for (int c = threadIdx.x; c < width; c += blockDim.x) peak = fmaxf(peak, fabsf(row[c]));
        for (int mask = 16; mask; mask /= 2) peak = fmaxf(peak, shuffle_xor(peak, mask));
        if (lane() == 0) peaks[warp()] = peak;
        __syncthreads();
        for (int i = 0; i < int(blockDim.x) / 32; i++) peak = fmaxf(peak, peaks[i]);
        // The power of two above the peak: what is stored lies below 1, where halves have all their bits. Peaks from 2^-4
        // to 2^15 stay as they are, which spares their products a pass.
        const u32 exponent = (__float_as_uint(peak) >> 23 & 0xff) + 1;
        const bool moved = exponent > 2 && exponent < 252 && (exponent < 124 || exponent > 142);
        const float scale = moved ? __uint_as_float(exponent << 23) : 1.f;
        const float inverse = moved ? __uint_as_float((254 - exponent) << 23) : 1.f;
        for (int c = threadIdx.x; c < width; c += blockDim.x)
            to.halves[token * width + c] = float_to_half(row[c] * inverse);
        if (threadIdx.x == 0) to.half_scales[token] = scale;
    }
}

// A row of floats to its other forms: one block a row.
__global__ void make_forms(const float *x, i64 stride, i64 width, const i32 *count, u8 *planes,
                           Record *records, u16 *halves, float *half_scales) {
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
