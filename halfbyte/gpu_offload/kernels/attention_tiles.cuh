// Tiles of keys and of values in shared memory, as halves: rows of C channels, 16 bytes apart, so that the eight rows of a
// matrix lie in different banks.
#pragma once
#include <words.cuh>
#include <kv_types.cuh>

template <class Type, int C, int KEYS, int THREADS> struct KvTile {
    static const int PITCH = C + 8, BYTES = 2 * KEYS * PITCH, UNITS = C / 8;
    static_assert(C % 16 == 0 && KEYS % 16 == 0, "matrices are multiplied 16 by 16");

    // Rows that the threads copy at once, 0 where units of a row are not dealt evenly.
    static const int STRIDE = THREADS % UNITS ? 0 : THREADS / UNITS;
    static const bool BY_PAGE = STRIDE > 0 && 16 % (STRIDE > 0 ? STRIDE : 1) == 0;

    // Positions `first` on, a multiple of 16; those outside [begin, end), and channels that a head has not, are zeros.
    // Types other than halves are rounded to them. `pages` are those of the tile. A commit and a barrier must follow.
    static WORD void fill(u16 *tile, u8 *layer, u32 page_bytes, const i32 (&pages)[KEYS / 16], int head, int size, int first,
                          int begin, int end) {
        if (first >= begin && first + KEYS <= end && padded_channels(size) == C)
            copy<true>(tile, layer, page_bytes, pages, head, size, first, begin, end);
        else
            copy<false>(tile, layer, page_bytes, pages, head, size, first, begin, end);
    }

    template <bool ALL>
    static WORD void copy(u16 *tile, u8 *layer, u32 page_bytes, const i32 (&pages)[KEYS / 16], int head, int size, int first,
                          int begin, int end) {
#pragma unroll
        for (int i = 0; i < (KEYS * UNITS + THREADS - 1) / THREADS; i++) {
            const int at = threadIdx.x + i * THREADS, key = at / UNITS, channel = at % UNITS * 8, position = first + key;
            if (KEYS * UNITS % THREADS && at >= KEYS * UNITS) break;
            u16 *target = tile + key * PITCH + channel;
            if (!ALL && (channel >= padded_channels(size) || position < begin || position >= end)) {
                *(uint4 *)target = make_uint4(0, 0, 0, 0);
                continue;
            }
            i32 page = pages[BY_PAGE ? i * STRIDE / 16 : 0];
#pragma unroll
            for (int p = 1; p < KEYS / 16; p++)
                if (!BY_PAGE && key / 16 == p) page = pages[p];
            const KvHead<Type> place(layer + i64(page) * page_bytes, head, size);
            if constexpr (Type::CODE_BITS == 16) begin_copy_16(target, place.row(key % 16) + 2 * channel);
            else *(uint4 *)target = converted(place, key % 16, channel);
        }
    }

    static WORD uint4 converted(const KvHead<Type> &place, int slot, int channel) {
        u32 h[4];
        Type::halves(h, Type::load(place.row(slot), channel));
        if constexpr (Type::SCALED) {
            const float scale = half_to_float(place.scales(slot)[channel / 32]);
#pragma unroll
            for (int i = 0; i < 4; i++) h[i] = floats_to_halves(low_half(h[i]) * scale, high_half(h[i]) * scale);
        }
        return make_uint4(h[0], h[1], h[2], h[3]);
    }

    // Operands of keys 16j .. + 15 and channels 16k .. + 15: two registers of each half of the keys.
    static WORD void keys(u32 (&b)[4], const u16 *tile, int j, int k) {
        load_matrices(b, tile + (16 * j + lane() / 16 * 8 + lane() % 8) * PITCH + 16 * k + lane() / 8 % 2 * 8);
    }
    // The same of values, with two registers of each half of the channels.
    static WORD void values(u32 (&b)[4], const u16 *tile, int j, int k) {
        load_matrices_transposed(b, tile + (16 * j + lane() % 16) * PITCH + 16 * k + lane() / 16 * 8);
    }
};
