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

// Rows from `first` to `end`, where halves [end - first, columns] of them go.
struct HalfRows {
    u16 *out;
    i64 columns, first, end;

    WORD void store(i64 row, i64 column, const uint4 &eight) const {
        if (row >= first && row < end && column < columns) *(uint4 *)(out + (row - first) * columns + column) = eight;
    }
};

// A warp's step of a tile whose first row is `row`, from column `column` on.
template <class F> WORD void dequantize_step(const u8 *step, const HalfRows &to, i64 row, i64 column) {
    typedef typename F::Scales Scales;
    const int l = lane(), g = l / 4, t = l % 4;
    const typename Scales::Row scales[2] = {Scales::row(step, g), Scales::row(step, g + 8)};
#pragma unroll
    for (int pair = 0; pair < F::PAIRS; pair++) {
        u32 a[2][4];
        F::read(a, step, pair, l);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int group = i / 2, upper = i % 2;
            float4 v[2];
#pragma unroll
            for (int half = 0; half < 2; half++)
                v[half] = values_of<Scales>(a[group][upper + 2 * half],
                                            scale_of<Scales>(scales[upper], 2 * pair + group, half));
            to.store(row + g + 8 * upper, column + 64 * pair + 32 * group + first_of_eight(t),
                     eight_neighbours(v[0], v[1], t % 2));
        }
    }
}

// Rows first .. first + count - 1 of the matrix `skip` bytes behind `matrix`. A warp has 256 columns of a tile, of plain
// floats four neighbours a thread.
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
        const int per_unit = 256 / F::COLUMNS;
        const i64 steps = (columns + F::COLUMNS - 1) / F::COLUMNS;
        const u32 units = u32((steps + per_unit - 1) / per_unit), work = blockIdx.x * (blockDim.x / 32) + warp();
        const i64 tile = first / 16 + work / units, begin = i64(work % units) * per_unit;
        const HalfRows to = {out, columns, first, first + count};
        if (16 * tile >= to.end) return;
        const u8 *from = matrix + skip + (tile * steps + begin) * F::STEP_BYTES;
#pragma unroll
        for (int i = 0; i < per_unit; i++)
            if (begin + i < steps)
                dequantize_step<F>(from + i * F::STEP_BYTES, to, 16 * tile, (begin + i) * F::COLUMNS);
    }
}
