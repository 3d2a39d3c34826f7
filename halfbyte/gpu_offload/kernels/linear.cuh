// Products of packed matrices with few tokens: out[t, n] = weight[n] . x[t] + bias[n] + residual[t, n].
//
// Blocks take tiles of 16 rows in turn. SPLIT warps share a tile's columns, units of 256 in turn, always the same ones, and
// fetch them through rings of their own in shared memory, ahead of their work, and before the kernel has ended that makes
// x. What a warp reads of x stays in its registers for all tiles if it is one unit (HELD), else for two. Codes and activations are bytes, so what a matrix instruction sums is exact; where scales are whole numbers too, all
// of a unit is. Floats are added unit after unit, and then the warps' sums in their order. None of that depends on which
// other tokens there are, or how many.
#pragma once
#include <forms.cuh>
#include <floats.cuh>
#include <packed.cuh>
#include <sums.cuh>

const int WARPS = 16;

// One product of a launch. Up to three that read the same x go together.
struct Matrix {
    const u8 *weights;
    i64 rows;
    float *out;
    i64 stride;
    const float *bias;
    WORD int tiles() const { return int(rows + 15) / 16; }
};

const int MATRICES = 3;

// 256 columns of a tile: what is copied at once.
template <class F> struct Unit {
    static const int STEPS = 256 / F::COLUMNS, BYTES = STEPS * F::STEP_BYTES;
};

// Begin to copy a unit. Behind a tile's last one lies the next tile, behind the last of all there is room.
template <int BYTES> WORD void fetch(u8 *slot, const u8 *unit) {
#pragma unroll
    for (int at = 0; at < BYTES; at += 512)
        if (at + 512 <= BYTES || 16 * lane() < BYTES - at) begin_copy_16(slot + at + 16 * lane(), unit + at + 16 * lane());
}

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

// What a tile's sums become and where they go.
struct Output {
    const Matrix &matrix;
    const float *residual;
    int tile, first, count;

    // Sum i of a lane: of row g, or g + 8 for odd i, and of token t of quad i / 2.
    WORD int row(int i) const { return 16 * tile + 8 * (i & 1) + (lane() >> 2); }
    WORD int token(int i) const { return first + i / 2 * 4 + (lane() & 3); }
    WORD bool there(int i) const { return row(i) < matrix.rows && token(i) < count; }
    WORD float bias(int i) const { return matrix.bias && there(i) ? matrix.bias[row(i)] : 0.f; }
    WORD float other(int i) const { return residual && there(i) ? residual[token(i) * matrix.stride + row(i)] : 0.f; }
    WORD void store(int i, float sum, float bias, float other) const {
        if (matrix.bias) sum += bias;
        if (residual) sum += other;
        if (there(i)) matrix.out[token(i) * matrix.stride + row(i)] = sum;
    }
};

// Add up what each of the SPLIT warps of a tile has, in their order. Each sum is another warp's task, in every round those
// of others, and each round from the other of two places, so that those who have none go on at once.
template <int QUADS, int SPLIT>
WORD void finish_tile(const float (&sums)[QUADS][2], float *places, int round, const Output &output) {
    const int group = warp() / SPLIT, own = warp() % SPLIT;
    if (SPLIT == 1) {
#pragma unroll
        for (int i = 0; i < 2 * QUADS; i++) output.store(i, sums[i / 2][i & 1], output.bias(i), output.other(i));
        return;
    }
    float *parts = places + (round % 2 * WARPS + group * SPLIT) * 2 * QUADS * 32 + lane();
#pragma unroll
    for (int i = 0; i < 2 * QUADS; i++) parts[(own * 2 * QUADS + i) * 32] = sums[i / 2][i & 1];
    // What is added to the first sum is on its way while the others arrive.
    const int begin = (own + round * 2 * QUADS) % SPLIT;
    float bias = begin < 2 * QUADS ? output.bias(begin) : 0.f, other = begin < 2 * QUADS ? output.other(begin) : 0.f;
    meet(1 + group, SPLIT);
    for (int i = begin; i < 2 * QUADS; i += SPLIT) {
        float sum = parts[i * 32];
#pragma unroll
        for (int w = 1; w < SPLIT; w++) sum += parts[(w * 2 * QUADS + i) * 32];
        if (i != begin) bias = output.bias(i), other = output.other(i);
        output.store(i, sum, bias, other);
    }
}

// Which tiles a group of warps works on: every `stride`-th of MATRICES matrices, which lie in shared memory since most of
// the time nobody asks. The first one's products are added to `residual`.
struct Tiles {
    const Matrix *matrices;
    const float *residual;
    int tile, stride, total;

    // Those of SPLIT warps of block `block` of `blocks`.
    WORD Tiles(const Matrix *m, const float *residual, int block, int blocks, int split)
        : matrices(m), residual(residual), tile(block + blocks * (warp() / split)), stride(blocks * (WARPS / split)), total(0) {
#pragma unroll
        for (int i = 0; i < MATRICES; i++) total += m[i].tiles();
    }
    WORD bool there(int behind = 0) const { return tile + behind * stride < total; }
    WORD void next(int n) { tile += n * stride; }
};

// The matrix that a tile is of, asked for tile after tile: it changes twice at most.
struct Finder {
    int number, first, end; // tiles `first` to `end` - 1 are its own
    WORD Finder(const Matrix *m) : number(0), first(0), end(m[0].tiles()) {}
    WORD bool find(const Matrix *m, int tile) {
        const bool same = tile < end;
        while (tile >= end && number < MATRICES - 1) first = end, end += m[++number].tiles();
        return same;
    }
};

// How many tiles a group of warps does side by side.
template <int QUADS, bool HELD> WORD constexpr int side_by_side() { return HELD || QUADS == 1 ? 1 : 2; }

// The fetching of a warp into STAGES slots in turn: its units in order, of each those of the tiles side by side.
template <class F, int SPLIT, int STAGES, bool HELD, int BESIDE> struct Fetch {
    Tiles tiles;
    int units, unit, beside, slot;
    i64 tile_bytes;
    u8 *ring;
    const u8 *at[BESIDE];
    Finder finder;

    // `started`: the copies that are under way from the beginning were begun by another one like this.
    WORD Fetch(const Tiles &t, int steps, u8 *shared, bool started = false)
        : tiles(t), unit(warp() % SPLIT), beside(0), slot(0), finder(t.matrices) {
        units = (steps + Unit<F>::STEPS - 1) / Unit<F>::STEPS, tile_bytes = i64(steps) * F::STEP_BYTES;
        ring = shared + warp() * STAGES * Unit<F>::BYTES;
        if (unit >= units) tiles.tile = tiles.total;
        find(false);
#pragma unroll
        for (int i = 0; i < STAGES - 1; i++) next(started);
    }
    // `on`: the tile is the next one of a group that holds its unit.
    WORD void find(bool on) {
#pragma unroll
        for (int i = 0; i < BESIDE; i++) {
            const int tile = tiles.tile + i * tiles.stride;
            const bool same = finder.find(tiles.matrices, tile);
            if (on && same) at[i] += tiles.stride * tile_bytes;
            else at[i] = tiles.matrices[finder.number].weights + (tile - finder.first) * tile_bytes + unit * Unit<F>::BYTES;
        }
    }
    WORD void next(bool started = false) {
        if (!started) {
            if (tiles.there()) fetch<Unit<F>::BYTES>(ring + slot * Unit<F>::BYTES, BESIDE == 1 || !beside ? at[0] : at[BESIDE - 1]);
            commit_copies();
        }
        slot = slot + 1 == STAGES ? 0 : slot + 1;
        if (HELD) {
            tiles.next(1);
            if (tiles.there()) find(true);
            return;
        }
        if (BESIDE == 2 && !beside && tiles.there(1)) {
            beside = 1;
            return;
        }
        beside = 0, unit += SPLIT, at[0] += SPLIT * Unit<F>::BYTES;
        if (BESIDE == 2) at[BESIDE - 1] += SPLIT * Unit<F>::BYTES;
        if (unit >= units) unit = warp() % SPLIT, tiles.next(BESIDE), find(false);
    }
};

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

// --- matrices of plain floats -------------------------------------------------------------------------------------------

// A warp a row; x stays what it is. Lane l takes 4l .. 4l + 3 of every 128 columns, so that sums are cut the same way
// however many tokens a block has.
template <class F, int TOKENS>
__global__ void linear_floats(const u8 *weights, i64 rows, i64 columns, const float *x, i64 x_stride, const i32 *count,
                              float *out, i64 stride, const float *bias, const float *residual) {
    let_next_start();
    wait_for_previous();
    const i64 row = i64(blockIdx.x) * (blockDim.x / 32) + warp(), first = i64(blockIdx.y) * TOKENS, tokens = *count;
    if (row >= rows || first >= tokens) return;
    float sums[TOKENS] = {};
    for (i64 c = 4 * lane(); c < columns; c += 128) {
        const int n = int(min(columns - c, i64(4)));
        float w[4] = {};
        for (int i = 0; i < n; i++) w[i] = F::at(weights, row * columns + c + i);
#pragma unroll
        for (int t = 0; t < TOKENS; t++) {
            const float *from = x + min(first + t, tokens - 1) * x_stride + c;
            for (int i = 0; i < n; i++) sums[t] = fmaf(w[i], from[i], sums[t]);
        }
    }
#pragma unroll
    for (int t = 0; t < TOKENS; t++) {
        float sum = sums[t];
        for (int mask = 16; mask; mask /= 2) sum += shuffle_xor(sum, mask);
        const i64 at = (first + t) * stride + row;
        if (lane() || first + t >= tokens) continue;
        if (bias) sum += bias[row];
        if (residual) sum += residual[at];
        out[at] = sum;
    }
}

// Rows of a product of halves: times the scale of x's row, plus what else there is; where nothing is, nothing is done.
__global__ void finish_product(const float *product, i64 rows, const float *half_scales, const i32 *count, float *out,
                               i64 stride, const float *bias, const float *residual) {
    let_next_start();
    wait_for_previous();
    const i64 token = blockIdx.x;
    if (token >= *count) return;
    const float scale = half_scales[token];
    if (scale == 1.f && !bias && !residual && product == out) return;
    for (i64 n = threadIdx.x; n < rows; n += blockDim.x) {
        float v = product[token * rows + n] * scale;
        if (bias) v += bias[n];
        if (residual) v += residual[token * stride + n];
        out[token * stride + n] = v;
    }
}
