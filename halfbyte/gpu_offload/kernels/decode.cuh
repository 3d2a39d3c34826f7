// Packed weights back to floats, as a file's block has them.
#pragma once
#include <floats.cuh>
#include <packed.cuh>

// Byte i of a word with its sign. 2^23 and a number in a float's lower bits: conversions of bytes are slow.
WORD float float_of_byte(u32 word, int i) {
    return __uint_as_float(__byte_perm(word ^ 0x80808080u, 0x4b000000u, 0x7440 | i)) - 8388736.f;
}

// Four neighbours of a row.
template <class Scales> WORD float4 values_of(u32 codes, const Scale &s) {
    const float4 q = make_float4(float_of_byte(codes, 0), float_of_byte(codes, 1), float_of_byte(codes, 2), float_of_byte(codes, 3));
    if (!Scales::OFFSET) return make_float4(s.scale * q.x, s.scale * q.y, s.scale * q.z, s.scale * q.w);
    // The product is exact, so that fusing rounds as a file's block does.
    return make_float4(fmaf(s.scale, q.x, s.offset), fmaf(s.scale, q.y, s.offset), fmaf(s.scale, q.z, s.offset),
                       fmaf(s.scale, q.w, s.offset));
}

template <class Scales> WORD Scale scale_of(const typename Scales::Row &row, int group, int half) {
    return floats_of(row, Scales::part(row, group, Scales::HALVES ? half : 0));
}

// Row `row` of a matrix, by all threads of a block.
template <class F> WORD void decode_row(float *out, const u8 *matrix, i64 row, i64 columns) {
    if constexpr (IsPlain<F>::YES) {
        for (i64 c = threadIdx.x; c < columns; c += blockDim.x) out[c] = F::at(matrix, row * columns + c);
    } else {
        typedef typename F::Scales Scales;
        const i64 steps = (columns + F::COLUMNS - 1) / F::COLUMNS, groups = columns / 32;
        const u8 *tile = matrix + row / 16 * steps * F::STEP_BYTES;
        const int r = int(row % 16), upper = r / 8;
        for (i64 i = threadIdx.x; i < (groups + 1) / 2 * 4; i += blockDim.x) {
            const int t = int(i % 4), pair = int(i / 4 % F::PAIRS);
            const u8 *step = tile + i / 4 / F::PAIRS * F::STEP_BYTES;
            u32 a[2][4];
            F::read(a, step, pair, r % 8 * 4 + t);
            const typename Scales::Row scales = Scales::row(step, r);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int group = j / 2, half = j % 2;
                const u32 codes = upper ? a[group][1 + 2 * half] : a[group][2 * half];
                const i64 c = i / 4 * 64 + 32 * group + 16 * half + 4 * t;
                if (c >= columns) continue;
                const float4 v = values_of<Scales>(codes, scale_of<Scales>(scales, 2 * pair + group, half));
                out[c] = v.x, out[c + 1] = v.y, out[c + 2] = v.z, out[c + 3] = v.w;
            }
        }
    }
}
