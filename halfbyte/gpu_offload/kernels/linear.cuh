// Products of packed matrices with few tokens: out[t, n] = weight[n] . x[t] + bias[n] + residual[t, n].
//
// A block takes one tile of 16 rows after another. Its warps share the tile's columns, units of 256 in turn, and fetch
// them through a ring of their own in shared memory, ahead of the tile, and of the kernel before, which made x. Codes
// and activations are bytes, so what a matrix instruction sums is exact; a group's sum times its scales is added in
// floats, unit after unit, and then the warps' sums in their order. None of that depends on which other tokens there
// are, on their number, or on the number of blocks.
#pragma once
#include <forms.cuh>
#include <packed.cuh>

// One product of a launch. Up to three that read the same x go together.
struct Matrix {
    const u8 *weights;
    i64 tiles, rows;
    float *out;
    i64 stride;
    const float *bias;
};

// Where a warp's fetching is: which work of the block, and which unit of its tile.
template <int WARPS> struct Place {
    int work, unit;
    WORD void advance(int units) {
        unit += WARPS;
        if (unit >= units) unit = warp(), work += gridDim.x;
    }
};

template <class F> struct Unit {
    static const int STEPS = 256 / F::COLUMNS, BYTES = STEPS * F::STEP_BYTES;
};

// Begin to copy a unit of a tile, of which `bytes` exist.
WORD void fetch(u8 *slot, const u8 *unit, int bytes) {
    for (int at = 16 * lane(); at < bytes; at += 512) begin_copy_16(slot + at, unit + at);
}

// What a lane reads of x: its own column of each quad of tokens, and the records of token t of each.
template <int QUADS> struct Columns {
    const uint2 *planes[QUADS];
    const float4 *records[QUADS];
    bool there[QUADS];

    // From token `first` on, of which there are `count`.
    WORD Columns(const u8 *p, const float4 *r, i64 groups, i64 first, i64 count) {
        const int l = lane();
#pragma unroll
        for (int q = 0; q < QUADS; q++) {
            const i64 column = first + 4 * q + (l >> 3), token = min(first + 4 * q + (l & 3), count - 1);
            there[q] = column < count;
            planes[q] = (const uint2 *)p + (column >> 2) * groups * 32 + 8 * (column & 3) + (l & 7);
            records[q] = r + (token >> 2) * groups * 4 + (token & 3);
        }
    }
};

// Add a group's products to `sums[quad][row g, row g + 8]` of token t of each quad. `a` are its codes, `group` its number
// in the step and `at` in the row.
template <class F, int QUADS>
WORD void add_group(float (&sums)[QUADS][2], const u32 (&a)[4], const typename F::Scales::Row (&rows)[2], int group,
                    const Columns<QUADS> &x, i64 at) {
    typedef typename F::Scales Scales;
    const int parts = Scales::HALVES ? 2 : 1;
    Scale scales[2][2];
#pragma unroll
    for (int half = 0; half < parts; half++)
        scales[half][0] = Scales::of(rows[0], group, half), scales[half][1] = Scales::of(rows[1], group, half);
#pragma unroll
    for (int q = 0; q < QUADS; q++) {
        uint2 b = make_uint2(0, 0);
        if (x.there[q]) b = x.planes[q][at * 32];
        const float4 record = x.records[q][at * 4];
#pragma unroll
        for (int half = 0; half < parts; half++) {
            i32 c[4] = {0, 0, 0, 0};
            if (Scales::HALVES)
                multiply_bytes_16(c, half ? a[2] : a[0], half ? a[3] : a[1], half ? b.y : b.x);
            else
                multiply_bytes_32(c, a[0], a[1], a[2], a[3], b.x, b.y);
            const float sum = !Scales::HALVES ? record.y : half ? record.w : record.z;
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const float dot = float(c[2 * r] * 256 + c[2 * r + 1]);
                sums[q][r] = fmaf(scales[half][r].scale, record.x * dot, sums[q][r]);
                if (Scales::OFFSET) sums[q][r] = fmaf(scales[half][r].offset, sum, sums[q][r]);
            }
        }
    }
}

// Add the products of a step whose first group is `at`.
template <class F, int QUADS>
WORD void add_step(float (&sums)[QUADS][2], const u8 *step, const Columns<QUADS> &x, i64 at) {
    const int g = lane() >> 2;
    const typename F::Scales::Row rows[2] = {F::Scales::row(step, g), F::Scales::row(step, g + 8)};
#pragma unroll
    for (int pair = 0; pair < F::PAIRS; pair++) {
        u32 a[2][4];
        F::read(a, step, pair, lane());
        add_group<F, QUADS>(sums, a[0], rows, 2 * pair, x, at + 2 * pair);
        add_group<F, QUADS>(sums, a[1], rows, 2 * pair + 1, x, at + 2 * pair + 1);
    }
}

// A tile's share of a launch: which matrix, which tile of it, and from which token on.
struct Work {
    Matrix matrix;
    i64 tile, token;

    WORD Work(const Matrix &m0, const Matrix &m1, const Matrix &m2, int number, int token_blocks, int tokens) {
        tile = number / token_blocks, token = number % token_blocks * tokens;
        matrix = m0;
        if (tile >= m0.tiles) {
            tile -= m0.tiles, matrix = m1;
            if (tile >= m1.tiles) tile -= m1.tiles, matrix = m2;
        }
    }
};

// Sum what the warps have of a tile, in their order, and store it. `parts` is [WARPS][2 * QUADS][32].
template <int QUADS, int WARPS>
WORD void store_tile(const float *parts, const Work &work, i64 count, const float *residual) {
    for (int i = threadIdx.x; i < 64 * QUADS; i += 32 * WARPS) {
        const int row = i & 15, column = i >> 4;
        const i64 n = 16 * work.tile + row, token = work.token + column;
        if (n >= work.matrix.rows || token >= count) continue;
        const float *part = parts + (column / 4 * 2 + row / 8) * 32 + row % 8 * 4 + column % 4;
        float sum = part[0];
#pragma unroll
        for (int w = 1; w < WARPS; w++) sum += part[w * 64 * QUADS];
        if (work.matrix.bias) sum += work.matrix.bias[n];
        if (residual) sum += residual[token * work.matrix.stride + n];
        work.matrix.out[token * work.matrix.stride + n] = sum;
    }
}

template <class F, int QUADS, int WARPS, int STAGES>
__global__ void __launch_bounds__(32 * WARPS)
    linear(const u8 *w0, i64 n0, float *out0, i64 stride0, const float *bias0, const u8 *w1, i64 n1, float *out1,
           i64 stride1, const float *bias1, const u8 *w2, i64 n2, float *out2, i64 stride2, const float *bias2,
           const float *residual, const u8 *planes, const float4 *records, i64 columns, const i32 *count,
           i64 token_blocks) {
    DYNAMIC_SHARED(shared);
    typedef Unit<F> U;
    const Matrix m0 = {w0, (n0 + 15) / 16, n0, out0, stride0, bias0}, m1 = {w1, (n1 + 15) / 16, n1, out1, stride1, bias1},
                 m2 = {w2, (n2 + 15) / 16, n2, out2, stride2, bias2};
    const int works = int((m0.tiles + m1.tiles + m2.tiles) * token_blocks), steps = int(columns + F::COLUMNS - 1) / F::COLUMNS;
    const i64 per_tile = i64(steps) * F::STEP_BYTES;
    const int units = (steps + U::STEPS - 1) / U::STEPS;
    u8 *ring = shared + warp() * STAGES * U::BYTES;
    float *parts = (float *)(shared + WARPS * STAGES * U::BYTES);

    let_next_start();
    Place<WARPS> ahead = {int(blockIdx.x), warp()};
    int slot = 0;
    auto fetch_next = [&]() {
        if (ahead.unit < units && ahead.work < works) {
            const Work work(m0, m1, m2, ahead.work, int(token_blocks), 4 * QUADS);
            const i64 at = i64(ahead.unit) * U::BYTES;
            fetch(ring + slot * U::BYTES, work.matrix.weights + work.tile * per_tile + at, int(min(per_tile - at, i64(U::BYTES))));
            ahead.advance(units);
        }
        commit_copies();
        slot = slot + 1 == STAGES ? 0 : slot + 1;
    };
    for (int i = 0; i < STAGES - 1; i++) fetch_next();
    wait_for_previous();

    const i64 tokens = *count, groups = padded_groups(columns);
    int reading = 0, odd = 0;
    for (int number = blockIdx.x; number < works; number += gridDim.x) {
        const Work work(m0, m1, m2, number, int(token_blocks), 4 * QUADS);
        const Columns<QUADS> x(planes, records, groups, work.token, tokens);
        float sums[QUADS][2] = {};
        for (int unit = warp(); unit < units; unit += WARPS) {
            fetch_next();
            wait_for_copies<STAGES - 1>();
            __syncwarp();
            const u8 *step = ring + reading * U::BYTES;
            const int there = min(U::STEPS, steps - unit * U::STEPS);
            for (int i = 0; i < there; i++)
                add_step<F, QUADS>(sums, step + i * F::STEP_BYTES, x, i64(unit) * 8 + i * (F::COLUMNS / 32));
            __syncwarp();
            reading = reading + 1 == STAGES ? 0 : reading + 1;
        }
        float *mine = parts + odd * WARPS * 64 * QUADS, *own = mine + warp() * 64 * QUADS + lane();
#pragma unroll
        for (int i = 0; i < 2 * QUADS; i++) own[32 * i] = sums[i / 2][i % 2];
        __syncthreads();
        // The other half of `parts` is written next, so that nobody need wait for those who still read this one.
        store_tile<QUADS, WARPS>(mine, work, tokens, number < m0.tiles * token_blocks ? residual : nullptr);
        odd ^= 1;
    }
}
