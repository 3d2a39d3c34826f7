// Rows of a packed matrix as halves [count, columns], for products by others.
#pragma once
#include <decode.cuh>

// Four neighbours from column 4t on and four from 16 + 4t on, of which lanes t and t ^ 1 exchange half: eight neighbours
// each, from column `first_of_eight` on.
WORD uint4 eight_neighbours(const float4 &v, const float4 &w, bool odd) {
    const uint2 low = make_uint2(floats_to_halves(v.x, v.y), floats_to_halves(v.z, v.w));
    const uint2 high = make_uint2(floats_to_halves(w.x, w.y), floats_to_halves(w.z, w.w));
    const u32 x = shuffle_xor(odd ? low.x : high.x, 1), y = shuffle_xor(odd ? low.y : high.y, 1);
    return odd ? make_uint4(x, y, high.x, high.y) : make_uint4(low.x, low.y, x, y);
}

WORD int first_of_eight(int t) { return t % 2 ? 12 + 4 * t : 4 * t; }

// A warp's pair of groups: those of rows from `first` to `end` that lie in the tile.
template <class F>
WORD void dequantize_pair(const u8 *step, int pair, u16 *out, i64 columns, i64 column, i64 row, i64 first, i64 end) {
    typedef typename F::Scales Scales;
    const int l = lane(), g = l / 4, t = l % 4;
    u32 a[2][4];
    F::read(a, step, pair, l);
    const typename Scales::Row scales[2] = {Scales::row(step, g), Scales::row(step, g + 8)};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int group = i / 2, upper = i % 2;
        float4 v[2];
#pragma unroll
        for (int half = 0; half < 2; half++)
            v[half] = values_of<Scales>(a[group][upper + 2 * half], scale_of<Scales>(scales[upper], 2 * pair + group, half));
        const uint4 eight = eight_neighbours(v[0], v[1], t % 2);
        const i64 n = row + g + 8 * upper, c = column + 32 * group + first_of_eight(t);
        if (n >= first && n < end && c < columns) *(uint4 *)(out + (n - first) * columns + c) = eight;
    }
}

// Rows first .. first + count - 1 of the matrix `skip` bytes behind `matrix`. A warp has a pair of groups of a tile, of
// plain floats four neighbours a thread.
template <class F>
__global__ void dequantize(const u8 *matrix, i64 skip, u16 *out, i64 columns, i64 first, i64 count) {
    let_next_start();
    wait_for_previous();
    if constexpr (IsPlain<F>::YES) {
        const i64 at = (i64(blockIdx.x) * blockDim.x + threadIdx.x) * 4, size = count * columns, from = first * columns;
        if (at + 3 < size) {
            float v[4];
            for (int i = 0; i < 4; i++) v[i] = F::at(matrix + skip, from + at + i);
            *(uint2 *)(out + at) = make_uint2(floats_to_halves(v[0], v[1]), floats_to_halves(v[2], v[3]));
        } else {
            for (i64 i = at; i < size; i++) out[i] = float_to_half(F::at(matrix + skip, from + i));
        }
    } else {
        const i64 pairs = (columns + 63) / 64, steps = (columns + F::COLUMNS - 1) / F::COLUMNS;
        const u32 warps = blockDim.x / 32, parts = u32((pairs + warps - 1) / warps);
        const i64 tile = first / 16 + blockIdx.x / parts, pair = i64(blockIdx.x % parts * warps) + warp();
        if (pair >= pairs) return;
        const u8 *step = matrix + skip + (tile * steps + pair / F::PAIRS) * F::STEP_BYTES;
        dequantize_pair<F>(step, int(pair % F::PAIRS), out, columns, 64 * pair, 16 * tile, first, first + count);
    }
}
