// Tiles of up to three matrices: whose turn they are, how they are fetched, and where their sums go.
#pragma once
#include <unit_sums.cuh>

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

// Begin to copy a unit. Behind a tile's last one lies the next tile, behind the last of all there is room.
template <int BYTES> WORD void fetch(u8 *slot, const u8 *unit) {
#pragma unroll
    for (int at = 0; at < BYTES; at += 512)
        if (at + 512 <= BYTES || 16 * lane() < BYTES - at) begin_copy_16(slot + at + 16 * lane(), unit + at + 16 * lane());
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
