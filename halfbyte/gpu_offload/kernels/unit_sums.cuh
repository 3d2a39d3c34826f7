// A unit of a tile times a unit of x: 16 rows, 256 columns, the tokens of some quads.
#pragma once
#include <held_rows.cuh>
#include <packed.cuh>

// 256 columns of a tile: what is copied at once.
template <class F> struct Unit {
    static const int STEPS = 256 / F::COLUMNS, BYTES = STEPS * F::STEP_BYTES;
};

// What a unit gives before factors of rows and tokens: of rows g and g + 8 and token t of each quad.
template <class Scales, int QUADS, bool WHOLE = Scales::WHOLE> struct UnitSums {
    i32 upper[QUADS][2] = {}, lower[QUADS][2] = {}, offset[QUADS][2] = {};
    WORD void add(int q, int r, WholeScale s, i32 up, i32 low, const Held<Scales, QUADS> &x, int at) {
        upper[q][r] += s.scale * up, lower[q][r] += s.scale * low;
        if (Scales::OFFSET && !Scales::IN_BYTES) offset[q][r] += s.offset * x.known[q].sum(at);
    }
    // The sums of rows g and g + 8 of a quad, by the factors of the rows.
    WORD void finish(float (&out)[2], int q, const typename Scales::Row (&rows)[2], const Held<Scales, QUADS> &x) const {
        float taken[2] = {float(offset[q][0]), float(offset[q][1])};
        if (Scales::OFFSET && Scales::IN_BYTES) {
            const u32 a0 = Scales::bytes_of(rows[0], lane() & 3), a1 = Scales::bytes_of(rows[1], lane() & 3);
            i32 c[4] = {0, 0, 0, 0}, d[4] = {0, 0, 0, 0};
            multiply_bytes_16(c, a0, a1, x.digits[q].first);
            multiply_bytes_16(d, a0, a1, x.digits[q].second);
#pragma unroll
            for (int r = 0; r < 2; r++)
                taken[r] = fmaf(65536.f, float(c[2 * r]), float(256 * c[2 * r + 1] + d[2 * r]));
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float dot = fmaf(256.f, float(upper[q][r]), float(lower[q][r])) * rows[r].scale;
            out[r] = Scales::OFFSET ? fmaf(rows[r].offset, taken[r], dot) : dot;
        }
    }
};
template <class Scales, int QUADS> struct UnitSums<Scales, QUADS, false> {
    float sums[QUADS][2] = {};
    WORD void add(int q, int r, Scale s, i32 up, i32 low, const Held<Scales, QUADS> &x, int at) {
        sums[q][r] = fmaf(s.scale, float(256 * up + low), sums[q][r]);
        if (Scales::OFFSET) sums[q][r] = fmaf(s.offset, float(x.known[q].sum(at)), sums[q][r]);
    }
    WORD void finish(float (&out)[2], int q, const typename Scales::Row (&)[2], const Held<Scales, QUADS> &) const {
        out[0] = sums[q][0], out[1] = sums[q][1];
    }
};

// Add the products of a group with codes `a`, of number `group` in the step and `at` in the unit.
template <class Scales, int QUADS>
WORD void add_group(UnitSums<Scales, QUADS> &sums, const u32 (&a)[4], const typename Scales::Row (&rows)[2], int group,
                    const Held<Scales, QUADS> &x, int at) {
#pragma unroll
    for (int q = 0; q < QUADS; q++) {
        const uint2 b = x.planes[q][at];
#pragma unroll
        for (int half = 0; half < (Scales::HALVES ? 2 : 1); half++) {
            i32 c[4] = {0, 0, 0, 0};
            if (Scales::HALVES)
                multiply_bytes_16(c, half ? a[2] : a[0], half ? a[3] : a[1], half ? b.y : b.x);
            else
                multiply_bytes_32(c, a[0], a[1], a[2], a[3], b.x, b.y);
            sums.add(q, 0, Scales::part(rows[0], group, half), c[0], c[1], x, at);
            sums.add(q, 1, Scales::part(rows[1], group, half), c[2], c[3], x, at);
        }
    }
}

// Add the products of a unit, of which `steps` steps are there, to the sums of rows g and g + 8 and token t.
template <class F, int QUADS>
WORD void add_unit(float (&sums)[QUADS][2], const u8 *step, int steps, const Held<typename F::Scales, QUADS> &x) {
    typedef typename F::Scales Scales;
    const int g = lane() >> 2;
    UnitSums<Scales, QUADS> parts;
    typename Scales::Row rows[2];
#pragma unroll
    for (int i = 0; i < Unit<F>::STEPS; i++, step += F::STEP_BYTES) {
        if (i && i >= steps) break;
        rows[0] = Scales::row(step, g), rows[1] = Scales::row(step, g + 8);
#pragma unroll
        for (int pair = 0; pair < F::PAIRS; pair++) {
            u32 a[2][4];
            F::read(a, step, pair, lane());
            const int at = i * 2 * F::PAIRS + 2 * pair;
            add_group<Scales, QUADS>(parts, a[0], rows, 2 * pair, x, at);
            add_group<Scales, QUADS>(parts, a[1], rows, 2 * pair + 1, x, at + 1);
        }
    }
#pragma unroll
    for (int q = 0; q < QUADS; q++) {
        float of_unit[2];
        parts.finish(of_unit, q, rows, x);
        sums[q][0] = fmaf(x.known[q].scale, of_unit[0], sums[q][0]);
        sums[q][1] = fmaf(x.known[q].scale, of_unit[1], sums[q][1]);
    }
}
