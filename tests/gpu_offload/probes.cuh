// Kernels that tests of the emulator run, right ones and wrong ones.
#pragma once
#include <words.cuh>

// Sum of 32 lanes by shuffles, and who was voted for.
extern "C" __global__ void probe_shuffles(const float *x, float *sums, i32 *votes) {
    let_next_start();
    wait_for_previous();
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = x[at];
    for (int mask = 16; mask; mask /= 2) sum += shuffle_xor(sum, mask);
    sums[at] = sum + shuffle(x[at], 3);
    votes[at] = i32(__ballot_sync(0xffffffffu, x[at] > 0.f));
}

// out[i] = x[n - 1 - i] through shared memory; without the barrier where `barrier` is false.
template <bool BARRIER> __global__ void probe_reverse(const float *x, float *out) {
    DYNAMIC_SHARED(shared);
    float *row = (float *)shared;
    wait_for_previous();
    row[threadIdx.x] = x[threadIdx.x];
    if (BARRIER) __syncthreads();
    out[threadIdx.x] = row[blockDim.x - 1 - threadIdx.x];
}

// Each pair of warps turns its 64 floats around, pairs apart from each other.
extern "C" __global__ void probe_pairs(const float *x, float *out) {
    DYNAMIC_SHARED(shared);
    float *row = (float *)shared;
    wait_for_previous();
    const int pair = warp() / 2;
    if (pair == 2) return;
    for (int turn = 0; turn < 3; turn++) {
        row[threadIdx.x] = turn ? out[threadIdx.x] : x[threadIdx.x];
        meet(1 + pair, 2);
        out[threadIdx.x] = row[64 * pair + 63 - threadIdx.x % 64];
        meet(1 + pair, 2);
    }
}

// Floats through shared memory by copies that nobody waits for; group by group, WAIT groups may be under way at the end.
template <int WAIT> __global__ void probe_copies(const float *x, float *out, i64 groups) {
    DYNAMIC_SHARED(shared);
    wait_for_previous();
    float4 *mine = (float4 *)shared + threadIdx.x * groups;
    for (i64 i = 0; i < groups; i++) {
        begin_copy_16(mine + i, (const float4 *)x + threadIdx.x * groups + i);
        commit_copies();
    }
    wait_for_copies<WAIT>();
    for (i64 i = 0; i < groups; i++) ((float4 *)out)[threadIdx.x * groups + i] = mine[i];
}

// c[16, 8] = a[16, K] b[8, K]^T of bytes with K = 32 or 16, rows dense.
template <int K> __global__ void probe_bytes(const u32 *a, const u32 *b, i32 *out) {
    wait_for_previous();
    const int g = lane() / 4, t = lane() % 4;
    i32 c[4] = {1, 2, 3, 4};
    if (K == 32)
        multiply_bytes_32(c, a[g * 8 + t], a[(g + 8) * 8 + t], a[g * 8 + 4 + t], a[(g + 8) * 8 + 4 + t], b[g * 8 + t],
                          b[g * 8 + 4 + t]);
    else
        multiply_bytes_16(c, a[g * 4 + t], a[(g + 8) * 4 + t], b[g * 4 + t]);
    for (int i = 0; i < 4; i++) out[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = c[i] - (i + 1);
}

// c[16, 8] = a[16, 16] b of halves, a and b by load_matrices; b is [8, 16], or [16, 8] where it is loaded transposed.
template <bool TRANSPOSED> __global__ void probe_halves(const u16 *a, const u16 *b, float *out) {
    __shared__ __align__(16) u16 sa[16 * 16];
    __shared__ __align__(16) u16 sb[16 * 16];
    wait_for_previous();
    for (int i = lane(); i < 256; i += 32) sa[i] = a[i], sb[i] = b[i % 128];
    __syncwarp();
    const int l = lane(), g = l / 4, t = l % 4;
    u32 ra[4], rb[4];
    load_matrices(ra, sa + (l % 16) * 16 + l / 16 * 8);
    if (TRANSPOSED)
        load_matrices_transposed(rb, sb + (l % 16) * 8);
    else
        load_matrices(rb, sb + (l % 8) * 16 + l / 8 % 2 * 8);
    float c[4] = {0.f, 0.f, 0.f, 0.f};
    multiply_halves(c, ra[0], ra[1], ra[2], ra[3], rb[0], rb[1]);
    for (int i = 0; i < 4; i++) out[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = c[i];
}

// Mistakes, one at a time.
extern "C" __global__ void probe_mistake(float *out, i64 which, float value) {
    DYNAMIC_SHARED(shared);
    __shared__ float left[32];
    if (which == 12) value = out[lane()];
    if (which == 13) out[lane()] = 1.f;
    if (which == 6) return;
    wait_for_previous();
    const int l = lane();
    if (which == 0) {
        if (l < 16) return;
        value = shuffle(value, 20);
    } else if (which == 1) {
        if (l == 5) __syncthreads();
        else value = shuffle(value, 20);
    } else if (which == 2) {
        if (l % 2) __syncwarp();
        else value = shuffle(value, 2);
    } else if (which == 3) {
        if (l == 0) shared[64] = 1;
    } else if (which == 4) {
        if (l == 0) out[32] = 1.f;
    } else if (which == 5) {
        float *nothing = nullptr;
        nothing[l] = value;
    } else if (which == 7) {
        *(u32 *)((u8 *)out + 2) = 1;
    } else if (which == 8) {
        value = left[l];
        left[l] = 1.f;
    } else if (which == 9) {
        out[64 + l] = 1.f;
    } else if (which == 10) {
        meet(3, 2);
    }
    out[l] = value;
}

// Conversions one by one.
extern "C" __global__ void probe_conversions(const float *x, const u16 *halves, u16 *rounded, float *widened, i32 *whole,
                                             i64 count) {
    wait_for_previous();
    for (i64 i = threadIdx.x; i < count; i += blockDim.x) {
        rounded[i] = float_to_half(x[i]);
        widened[i] = half_to_float(halves[i]);
        whole[i] = __float2int_rn(x[i]);
    }
}

extern "C" __global__ void probe_bits(const u32 *a, const u32 *b, const u32 *selectors, u32 *permuted, i32 *dots) {
    wait_for_previous();
    const int at = threadIdx.x;
    permuted[at] = __byte_perm(a[at], b[at], selectors[at]);
    dots[at] = __dp4a(i32(a[at]), i32(b[at]), 7);
}

// Blocks wait for each other: each adds its number to all, after all others have written theirs.
extern "C" __global__ void probe_grid(u32 *counter, i32 *numbers, i32 *sums, i64 expected) {
    DYNAMIC_SHARED(shared);
    __shared__ i32 mine;
    wait_for_previous();
    if (threadIdx.x == 0) mine = blockIdx.x + 1, *(i32 *)shared = 100 * (blockIdx.x + 1);
    __syncthreads();
    for (int round = 1; round < 4; round++) {
        if (threadIdx.x == 0) {
            numbers[blockIdx.x] = round * mine;
            __threadfence();
            atomicAdd(counter, 1u);
            while (load_again(counter) < round * expected) {}
            i32 sum = mine + *(i32 *)shared;
            for (int i = 0; i < int(gridDim.x); i++) sum += numbers[i];
            sums[blockIdx.x * 4 + round] = sum;
            atomicAdd(counter + 1, 1u);
            while (load_again(counter + 1) < round * expected) {}
        }
        __syncthreads();
    }
}

// Which block came when.
extern "C" __global__ void probe_turns(i32 *next, i32 *turns) {
    wait_for_previous();
    if (threadIdx.x == 0) turns[blockIdx.x + gridDim.x * blockIdx.y] = atomicAdd(next, 1);
}
