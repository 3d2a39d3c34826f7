// What warps hold of x in registers: bytes of a unit of 256 columns, and what is known of it besides.
#pragma once
#include <forms.cuh>
#include <sums.cuh>

const int WARPS = 16;

// What a lane reads of x: its own column of each quad of tokens, and the records of token t of each.
template <int QUADS> struct Columns {
    const uint2 *planes[QUADS];
    const Record *own[QUADS], *records[QUADS]; // of the column's token, and of token t
    bool there[QUADS];

    // From token `first` on, of which there are `count`.
    WORD Columns(const u8 *p, const Record *r, int units, int first, int count) {
        const int l = lane();
#pragma unroll
        for (int q = 0; q < QUADS; q++) {
            const int column = first + 4 * q + (l >> 3), token = min(first + 4 * q + (l & 3), count - 1);
            there[q] = column < count;
            planes[q] = (const uint2 *)p + i64(column >> 2) * units * 256 + 8 * (column & 3) + (l & 7);
            records[q] = r + i64(token >> 2) * units * 4 + (token & 3);
            own[q] = r + i64(column >> 2) * units * 4 + (column & 3);
        }
    }
};

// What is known of a token's unit besides its bytes: its scale, and the sums of groups, of few tokens in registers.
template <bool NEAR> struct Known {
    float scale;
    i32 sums[8];
    WORD void load(const Record *r) {
        scale = r->scale;
#pragma unroll
        for (int i = 0; i < 8; i++) sums[i] = r->sums[i];
    }
    WORD i32 sum(int group) const { return sums[group]; }
};
template <> struct Known<false> {
    float scale;
    const Record *record;
    WORD void load(const Record *r) { record = r, scale = r->scale; }
    WORD i32 sum(int group) const { return record->sums[group]; }
};

// What a lane brings of the sums of its column's token, where offsets are in bytes: the digits of four groups from 4t on,
// or of four halves. Columns of even number have the highest, and then the lowest; the others the middle one.
struct Digits {
    u32 first, second;
    template <class Scales> WORD void load(const Record *record) {
        const int t = lane() & 3, odd = lane() >> 2 & 1;
        first = second = 0;
        if (Scales::HALVES) {
            first = ((const u32 *)record->halves[odd ? 1 : 2])[t];
            if (!odd) second = ((const u32 *)record->halves[0])[t];
        } else if (t < 2) {
            first = ((const u32 *)record->groups[odd ? 1 : 2])[t];
            if (!odd) second = ((const u32 *)record->groups[0])[t];
        }
    }
};

// A unit of x in registers.
template <class Scales, int QUADS> struct Held {
    static const bool IN_BYTES = Scales::OFFSET && Scales::IN_BYTES;
    uint2 planes[QUADS][8];
    Digits digits[QUADS];
    Known<QUADS <= 2 && Scales::OFFSET && !Scales::IN_BYTES> known[QUADS];
    WORD void load(const Columns<QUADS> &x, int unit) {
#pragma unroll
        for (int q = 0; q < QUADS; q++) {
            known[q].load(x.records[q] + unit * 4);
            digits[q] = {0, 0};
            if (IN_BYTES && x.there[q]) digits[q].template load<Scales>(x.own[q] + unit * 4);
#pragma unroll
            for (int i = 0; i < 8; i++)
                planes[q][i] = x.there[q] ? x.planes[q][(unit * 8 + i) * 32] : make_uint2(0, 0);
        }
    }
    template <class Unit> WORD void load(const Unit *x, int unit) {
        known[0].load(&x[unit].record);
        digits[0] = {0, 0};
        if (IN_BYTES && lane() < 8) digits[0].template load<Scales>(&x[unit].record);
#pragma unroll
        for (int i = 0; i < 8; i++) planes[0][i] = lane() < 8 ? x[unit].planes[i][lane()] : make_uint2(0, 0);
    }
};

// A unit of a single token, of which a block makes bytes for itself.
struct OwnUnit {
    uint2 planes[8][8];
    Record record;
};

struct OwnNorm {
    const float *x, *weight;
    float eps;
};

// Norm a row of `width` columns as norm.cuh does, to the bit, into `units` in shared memory. `fetched` is the weight of
// the warp's first unit.
WORD void norm_token(OwnUnit *units, const OwnNorm &norm, int width, const float4 (&fetched)[2]) {
    float share = 0.f;
    for (int c = 4 * threadIdx.x; c < width; c += 4 * blockDim.x) {
        const float4 v = four_of(norm.x, c, width);
        share = fmaf(v.w, v.w, fmaf(v.z, v.z, fmaf(v.y, v.y, fmaf(v.x, v.x, share))));
    }
    const float inverse = 1.f / sqrtf(over_block<Sum>(share) / float(width) + norm.eps);
    for (int unit = warp(); unit < padded_units(width); unit += WARPS) {
        float4 v[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int c = 256 * unit + 128 * i + 4 * lane();
            const float4 x = four_of(norm.x, c, width), w = unit == warp() ? fetched[i] : four_of(norm.weight, c, width);
            v[i] = make_float4(x.x * inverse * w.x, x.y * inverse * w.y, x.z * inverse * w.z, x.w * inverse * w.w);
        }
        store_numbers((u8 *)units[unit].planes, 64, &units[unit].record, v[0], v[1]);
    }
    __syncthreads();
}
