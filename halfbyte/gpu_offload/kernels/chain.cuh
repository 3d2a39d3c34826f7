// Several kernels in one launch: blocks that all are there at once do instruction after instruction and meet in between.
//
// What a product fetches is known before its turn: copies of the next one begin as soon as the rings are free, so that
// memory is read while blocks meet, and while rows are normed.
#pragma once
#include <elementwise.cuh>
#include <linear.cuh>
#include <norm.cuh>

const int MOST_INSTRUCTIONS = 16, MOST_WORDS = 20;

// Rows are cut into `pieces`; `next` is the number of the product that follows, or 0, and `product` says that this is one.
struct Instruction {
    i32 kind, pieces, next, product;
    u64 words[MOST_WORDS];
    template <class T> WORD T *pointer(int i) const { return (T *)words[i]; }
    WORD i64 whole(int i) const { return i64(words[i]); }
    WORD float number(int i) const { return __uint_as_float(u32(words[i])); }
};

// Memory of a block: the rings, and what instructions need besides.
struct Room {
    u8 *ring;
    float *other;
};

WORD Forms forms_at(const Instruction &in, int i) {
    return {in.pointer<float>(i), in.pointer<u8>(i + 2), in.pointer<Record>(i + 3), in.pointer<u16>(i + 4),
            in.pointer<float>(i + 5)};
}

// Words are the arguments of the kernels of like names; those of a product begin as three matrices do.
static_assert(sizeof(Matrix) == 5 * sizeof(u64), "a matrix is five words");
template <class F, int QUADS, int SPLIT, int STAGES, bool HELD> struct Linear {
    static WORD Tiles tiles(const Instruction &in) {
        return Tiles((const Matrix *)in.words, in.pointer<const float>(15), blockIdx.x, gridDim.x, SPLIT);
    }
    static WORD void fetch(const Instruction &in, const Room &room) {
        Fetch<F, SPLIT, STAGES, HELD>(tiles(in), steps_of<F>(in.whole(18)), room.ring);
    }
    static WORD void run(const Instruction &in, const Room &room) {
        const int steps = steps_of<F>(in.whole(18)), units = padded_units(in.whole(18)), count = *in.pointer<i32>(19);
        for (int first = 0; first < count; first += 4 * QUADS) {
            Fetch<F, SPLIT, STAGES, HELD> fetch(tiles(in), steps, room.ring, first == 0);
            const Columns<QUADS> x(in.pointer<u8>(16), in.pointer<Record>(17), units, first, count);
            multiply_tiles<F, QUADS, SPLIT, STAGES, HELD>(tiles(in), fetch, x, steps, room.other, first, count);
            __syncthreads();
        }
    }
};

template <bool CENTRED> struct Normal {
    static WORD void fetch(const Instruction &, const Room &) {}
    static WORD void run(const Instruction &in, const Room &room) {
        const Norm norm = {{in.pointer<const float>(0), in.pointer<const float>(2), in.whole(1), in.whole(3), in.whole(9)},
                           in.pointer<float>(4), in.whole(5), in.pointer<const float>(7), in.number(8), forms_at(in, 12),
                           in.whole(13)};
        const int count = *in.pointer<i32>(11);
        for (int token = blockIdx.x; token < count; token += gridDim.x) {
            norm_row<CENTRED>(norm, token, room.other, in.pointer<const float>(6), false);
            __syncthreads();
        }
    }
};

template <class Function> struct Elementwise {
    static WORD void fetch(const Instruction &, const Room &) {}
    static WORD void run(const Instruction &in, const Room &) {
        const int count = *in.pointer<i32>(6), pieces = in.pieces;
        for (int at = blockIdx.x; at < count * pieces; at += gridDim.x) {
            const int token = at / pieces;
            const Of<Function> row{in.pointer<const float>(0) + token * in.whole(1),
                                   in.pointer<const float>(2) + token * in.whole(3), in.number(4)};
            store_columns(forms_at(in, 7), token, row, in.whole(5), in.whole(8), at % pieces, pieces);
        }
    }
};

// Bodies by number.
template <class... Bodies> struct Table;
template <> struct Table<> {
    static WORD void fetch(int, const Instruction &, const Room &) {}
    static WORD void run(int, const Instruction &, const Room &) {}
};
template <class Body, class... Others> struct Table<Body, Others...> {
    static WORD void fetch(int kind, const Instruction &in, const Room &room) {
        if (kind) Table<Others...>::fetch(kind - 1, in, room);
        else Body::fetch(in, room);
    }
    static WORD void run(int kind, const Instruction &in, const Room &room) {
        if (kind) Table<Others...>::run(kind - 1, in, room);
        else Body::run(in, room);
    }
};

// All blocks meet; what they wrote before, all may read afterwards. In two parts: what is fetched in between does not
// keep this block's own writes from being seen. `counter` counts from 0 through a launch.
WORD void arrive(u32 *counter) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(counter, 1u);
    }
}

WORD void wait_for_all(const u32 *counter, int round) {
    if (threadIdx.x == 0) {
        while (load_again(counter) < u32(round) * gridDim.x) {}
        __threadfence();
    }
    __syncthreads();
}

// Grid: no more blocks than surely are there together. `counters` are two zeros, before and afterwards.
template <class... Bodies>
__global__ void __launch_bounds__(32 * WARPS) chain(const Instruction *program, i64 length, u32 *counters, i64 ring_bytes) {
    DYNAMIC_SHARED(shared);
    __shared__ Instruction list[MOST_INSTRUCTIONS];
    typedef Table<Bodies...> All;
    const Room room = {shared, (float *)(shared + ring_bytes)};
    for (int i = threadIdx.x; i < int(length) * int(sizeof(Instruction) / 8); i += blockDim.x)
        ((u64 *)list)[i] = ((const u64 *)program)[i];
    __syncthreads();
    auto fetch = [&](int number) { All::fetch(list[number].kind, list[number], room); };
    if (list[0].product) fetch(0);
    else if (list[0].next) fetch(list[0].next);
    let_next_start();
    wait_for_previous();
    for (int i = 0; i < int(length); i++) {
        All::run(list[i].kind, list[i], room);
        arrive(counters);
        if (list[i].product && list[i].next) fetch(list[i].next); // the rings are free again
        if (i + 1 < int(length)) wait_for_all(counters, i + 1);
    }
    if (threadIdx.x == 0 && atomicAdd(counters + 1, 1u) == gridDim.x - 1) counters[0] = counters[1] = 0;
}
