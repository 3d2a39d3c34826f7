// Products of packed matrices with few tokens: out[t, n] = weight[n] . x[t] + bias[n] + residual[t, n].
//
// Blocks take tiles of 16 rows in turn. SPLIT warps share a tile's columns, units of 256 in turn, always the same ones, and
// fetch them through rings of their own in shared memory, ahead of their work, and before the kernel has ended that makes
// x. What a warp reads of x stays in its registers for all tiles if it is one unit (HELD), else for two. Codes and
// activations are bytes, so what a matrix instruction sums is exact; where scales are whole numbers too, all of a unit
// is. Floats are added unit after unit, and then the warps' sums in their order. None of that depends on which other
// tokens there are, or how many.
#pragma once
#include <tiles.cuh>

// All tiles of a group of warps, for tokens from `first` on, of which there are `count`.
template <class F, int QUADS, int SPLIT, int STAGES, bool HELD, int BESIDE, class X>
WORD void multiply_tiles(Tiles tiles, Fetch<F, SPLIT, STAGES, HELD, BESIDE> &fetch, const X &x, int steps, float *parts,
                         int first, int count) {
    const bool EARLY = !HELD && QUADS == 1;
    const int beside = BESIDE;
    const int share = warp() % SPLIT;
    Held<typename F::Scales, QUADS> held, next;
    if (HELD && share < fetch.units) held.load(x, share);
    if (EARLY && share < fetch.units) next.load(x, share);
    Finder finder(tiles.matrices);
    int reading = 0, round = 0;
    for (; tiles.there(); tiles.next(beside)) {
        float sums[beside][QUADS][2] = {};
        for (int unit = warp() % SPLIT; unit < fetch.units; unit += SPLIT) {
            // The next unit of x is on its way while this one is multiplied.
            if (EARLY) held = next, next.load(x, unit + SPLIT < fetch.units ? unit + SPLIT : share);
            else if (!HELD) held.load(x, unit);
#pragma unroll
            for (int i = 0; i < beside; i++) {
                if (i && !tiles.there(i)) break;
                fetch.next();
                wait_for_copies<STAGES - 1>();
                __syncwarp();
                add_unit<F, QUADS>(sums[i], fetch.ring + reading * Unit<F>::BYTES, steps - unit * Unit<F>::STEPS, held);
                __syncwarp();
                reading = reading + 1 == STAGES ? 0 : reading + 1;
            }
        }
#pragma unroll
        for (int i = 0; i < beside; i++, round++) {
            if (i && !tiles.there(i)) break;
            const int tile = tiles.tile + i * tiles.stride;
            finder.find(tiles.matrices, tile);
            const int matrix = finder.number;
            const Output output = {tiles.matrices[matrix], matrix ? nullptr : tiles.residual, tile - finder.first, first, count};
            finish_tile<QUADS, SPLIT>(sums[i], parts, round, output);
        }
    }
}

template <class F> WORD int steps_of(i64 columns) { return int(columns + F::COLUMNS - 1) / F::COLUMNS; }

// Grid: any number of blocks, (tokens / (4 * QUADS)). NORMED: x is one row that nobody has normed yet.
template <class F, int QUADS, int SPLIT, int STAGES, bool HELD, bool NORMED>
__global__ void __launch_bounds__(32 * WARPS)
    linear(const u8 *w0, i64 n0, float *out0, i64 stride0, const float *bias0, const u8 *w1, i64 n1, float *out1,
           i64 stride1, const float *bias1, const u8 *w2, i64 n2, float *out2, i64 stride2, const float *bias2,
           const float *residual, const u8 *planes, const Record *records, i64 columns, const i32 *count, const float *x,
           const float *norm_weight, float eps) {
    DYNAMIC_SHARED(shared);
    let_next_start();
    __shared__ Matrix matrices[MATRICES];
    if (threadIdx.x == 0) {
        matrices[0] = {w0, n0, out0, stride0, bias0};
        matrices[1] = {w1, n1, out1, stride1, bias1};
        matrices[2] = {w2, n2, out2, stride2, bias2};
    }
    __syncthreads();
    const int steps = steps_of<F>(columns), units = padded_units(columns), width = int(columns);
    const Tiles tiles(matrices, residual, blockIdx.x, gridDim.x, SPLIT);
    Fetch<F, SPLIT, STAGES, HELD, side_by_side<QUADS, HELD>()> fetch(tiles, steps, shared);
    float *parts = (float *)(shared + WARPS * STAGES * Unit<F>::BYTES);
    if (NORMED) {
        OwnUnit *own = (OwnUnit *)(parts + (SPLIT == 1 ? 0 : 2 * WARPS * 2 * QUADS * 32));
        const int c = 256 * warp() + 4 * lane();
        const float4 fetched[2] = {four_of(norm_weight, c, width), four_of(norm_weight, c + 128, width)};
        wait_for_previous();
        norm_token(own, {x, norm_weight, eps}, width, fetched);
        multiply_tiles<F, QUADS, SPLIT, STAGES, HELD, side_by_side<QUADS, HELD>()>(tiles, fetch, own, steps, parts, 0, 1);
        return;
    }
    wait_for_previous();
    const int tokens = *count, first = blockIdx.y * 4 * QUADS;
    if (first >= tokens) return;
    const Columns<QUADS> at(planes, records, units, first, tokens);
    multiply_tiles<F, QUADS, SPLIT, STAGES, HELD, side_by_side<QUADS, HELD>()>(tiles, fetch, at, steps, parts, first, tokens);
}
