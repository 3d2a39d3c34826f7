// A file's blocks to packed tiles: packed.cuh says where what lies.
#pragma once
#include <file_grids.cuh>
#include <packed.cuh>

// --- planes: the other way round than in packed.cuh, from codes in registers to the bytes of a lane -----------------------

template <int TO> WORD void put_two_bits(u8 *at, int l, const u32 (&a)[2][4]) {
    u32 w[2] = {0, 0};
    for (int r = 0; r < 8; r++) w[r / 4] |= (a[r / 4][r % 4] >> TO & 3 * file::ONES) << 2 * (r % 4);
    *(uint2 *)(at + 8 * l) = make_uint2(w[0], w[1]);
}

template <int TO> WORD void put_one_bit(u8 *at, int l, const u32 (&a)[2][4]) {
    u32 w = 0;
    for (int r = 0; r < 8; r++) w |= (a[r / 4][r % 4] >> TO & file::ONES) << r;
    *(u32 *)(at + 4 * l) = w;
}

// Four bytes below 16 to half a word.
WORD u32 to_nibbles(u32 codes) {
    codes |= codes >> 4;
    return (codes & 0xff) | (codes >> 8 & 0xff00);
}

template <class Planes> struct PutPlanes;

template <> struct PutPlanes<FourBits> {
    static WORD void put(u8 *at, int l, const u32 (&a)[2][4]) {
        u32 w[4];
        for (int i = 0; i < 4; i++) w[i] = (a[i / 2][i % 2] & 15 * file::ONES) | (a[i / 2][i % 2 + 2] & 15 * file::ONES) << 4;
        *(uint4 *)(at + 16 * l) = make_uint4(w[0], w[1], w[2], w[3]);
    }
};

template <class Levels> struct PutPlanes<FourBitsOf<Levels>> {
    static WORD void put(u8 *at, int l, const u32 (&a)[2][4]) {
        u32 w[4];
        for (int i = 0; i < 4; i++) w[i] = to_nibbles(a[i / 2][i % 2]) | to_nibbles(a[i / 2][i % 2 + 2]) << 16;
        *(uint4 *)(at + 16 * l) = make_uint4(w[0], w[1], w[2], w[3]);
    }
};

template <> struct PutPlanes<EightBits> {
    static WORD void put(u8 *at, int l, const u32 (&a)[2][4]) {
        for (int i = 0; i < 2; i++) *(uint4 *)(at + 512 * i + 16 * l) = make_uint4(a[i][0], a[i][1], a[i][2], a[i][3]);
    }
};

template <int TO> struct PutPlanes<TwoBits<TO>> {
    static WORD void put(u8 *at, int l, const u32 (&a)[2][4]) { put_two_bits<TO>(at, l, a); }
};

template <int TO> struct PutPlanes<OneBit<TO>> {
    static WORD void put(u8 *at, int l, const u32 (&a)[2][4]) { put_one_bit<TO>(at, l, a); }
};

template <> struct PutPlanes<TwoBitsAlone> : PutPlanes<TwoBits<0>> {};
template <> struct PutPlanes<OneBitAlone> : PutPlanes<OneBit<0>> {};

template <class Levels> struct PutPlanes<ThreeBitsOf<Levels>> {
    static WORD void put(u8 *at, int l, const u32 (&a)[2][4]) {
        put_two_bits<0>(at, l, a);
        put_one_bit<2>(at + 256, l, a);
    }
};

template <class Low, class High> struct PutPlanes<Both<Low, High>> {
    static WORD void put(u8 *at, int l, const u32 (&a)[2][4]) {
        PutPlanes<Low>::put(at, l, a);
        PutPlanes<High>::put(at + Low::PAIR_BYTES, l, a);
    }
};

// --- the kernel -----------------------------------------------------------------------------------------------------------

// Rows of a tile where the file has them, and how many they are. `source` has the file's rows from those of `first_tile`
// on; every expert's `rows` begin a tile.
struct FileRows {
    const u8 *at;
    int count;

    WORD FileRows(const u8 *source, i64 row_bytes, i64 rows, i64 first_tile, i64 tile) {
        const i64 tiles = (rows + 15) / 16, left = rows - tile % tiles * 16;
        at = source + (row_of(tile, tiles, rows) - row_of(first_tile, tiles, rows)) * row_bytes;
        count = int(left < 16 ? left : 16);
    }
    static WORD i64 row_of(i64 tile, i64 tiles, i64 rows) { return tile / tiles * rows + tile % tiles * 16; }
};

// A block of threads makes one step of one tile, a warp a pair of groups.
template <class Block>
__global__ void pack(const u8 *source, u8 *target, const u8 *grid, i64 row_bytes, i64 columns, i64 rows, i64 first_tile) {
    typedef typename Block::Packed Family;
    const int per_step = Family::COLUMNS / Block::COLUMNS;
    let_next_start();
    wait_for_previous();
    const i64 tile = first_tile + blockIdx.x, first = i64(blockIdx.y) * per_step, blocks = columns / Block::COLUMNS;
    const FileRows from(source, row_bytes, rows, first_tile, tile);
    u8 *step = target + (tile * gridDim.y + blockIdx.y) * Family::STEP_BYTES;

    for (int i = threadIdx.x; i < Family::Scales::BYTES / 4; i += blockDim.x) ((u32 *)step)[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < from.count * per_step; i += blockDim.x) {
        const int row = i / per_step, k = i % per_step;
        if (first + k < blocks) Block::scales(step, from.at + row * row_bytes + (first + k) * Block::BYTES, row, k);
    }

    const int l = lane(), g = l / 4, t = l % 4, pair = warp();
    u32 a[2][4];
    for (int r = 0; r < 8; r++) {
        const int row = g + r % 2 * 8, c = 64 * pair + r / 4 * 32 + r % 4 / 2 * 16 + 4 * t;
        const i64 block = first + c / Block::COLUMNS;
        const bool there = row < from.count && block < blocks;
        a[r / 4][r % 4] =
            there ? Block::codes(from.at + row * row_bytes + block * Block::BYTES, c % Block::COLUMNS, grid) : 0;
    }
    PutPlanes<typename Family::Planes>::put(step + Family::Scales::BYTES + pair * Family::Planes::PAIR_BYTES, l, a);
}
