// What the threads of a block find together. All of them call it, all get the same bits, and the order is always the same.
#pragma once
#include <words.cuh>

struct Sum {
    template <class T> static WORD T of(T a, T b) { return a + b; }
};

struct Largest {
    static WORD float of(float a, float b) { return fmaxf(a, b); }
};

template <class Fold, class T> WORD T over_warp(T value) {
    for (int mask = 16; mask; mask /= 2) value = Fold::of(value, shuffle_xor(value, mask));
    return value;
}

template <class Fold, class T> WORD T over_block(T value) {
    __shared__ T of_warps[32];
    value = over_warp<Fold>(value);
    if (lane() == 0) of_warps[warp()] = value;
    __syncthreads();
    value = of_warps[0];
    for (int i = 1; i < int(blockDim.x) / 32; i++) value = Fold::of(value, of_warps[i]);
    __syncthreads(); // who comes back at once writes there again
    return value;
}
