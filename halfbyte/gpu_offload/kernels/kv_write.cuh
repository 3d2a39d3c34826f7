// Queries turned, keys turned and stored, values stored: all that stands between products and attention, in one launch.
#pragma once
#include <words.cuh>
#include <kv_types.cuh>
#include <rope.cuh>
#include <step.cuh>

// A warp stores a block of 32 channels, a lane each; those behind the head's are zero.
template <class Type> struct StoreBlock {
    static WORD void store(const KvHead<Type> &head, int slot, int channel, int padded, float x) {
        float top = x, bottom = x;
        for (int mask = 16; mask; mask /= 2) {
            top = fmaxf(top, shuffle_xor(top, mask));
            bottom = fminf(bottom, shuffle_xor(bottom, mask));
        }
        const u16 bits = float_to_half(Type::scale_of(top, bottom));
        const float scale = half_to_float(bits);
        const int number = scale == 0.f ? 0 : __float2int_rn(fminf(fmaxf(x / scale, Type::SMALLEST), Type::LARGEST));
        Type::store(head.row(slot), channel, number, channel < padded);
        if (lane() == 0) head.scales(slot)[channel / 32] = bits;
    }
};

template <> struct StoreBlock<KvF16> {
    static WORD void store(const KvHead<KvF16> &head, int slot, int channel, int padded, float x) {
        if (channel < padded) ((u16 *)head.row(slot))[channel] = float_to_half(x);
    }
};

template <> struct StoreBlock<KvF32> {
    static WORD void store(const KvHead<KvF32> &head, int slot, int channel, int padded, float x) {
        if (channel < padded) ((float *)head.row(slot))[channel] = x;
    }
};

const int PART = 256; // channels of a head that a warp stores

template <class Type>
WORD void store_part(u8 *layer, int head, int slot, int size, int start, const Head &x, const Turns &turns) {
    const KvHead<Type> place(layer, head, size);
    const int end = min(kv_blocks(size) * 32, start + PART);
    for (int c = start + lane(); c < end; c += 32)
        StoreBlock<Type>::store(place, slot, c, padded_channels(size), c < size ? turned(x, turns, c) : 0.f);
}

// A warp a head, or a part of one: of queries, then of keys, then of values; heads of the block's token are dealt over the grid's x. Without
// `q_weight` or `k_weight` nothing is normed, with 0 heads there are no queries, with a key size of 0 no keys.
template <class Keys, class Values>
__global__ void rope_and_store(const Step *step, const float *q, i64 q_stride, const float *q_weight, float q_eps,
                               float *q_out, i64 q_out_stride, const float *k, i64 k_stride, const float *k_weight,
                               float k_eps, const float *v, i64 v_stride, const u64 *turns, i64 n_pairs, i64 neighbours,
                               float magnitude, i64 heads, i64 kv_heads, i64 key_size, i64 value_size, u8 *pages,
                               i64 page_bytes, i64 keys_at, i64 values_at) {
    DYNAMIC_SHARED(shared);
    let_next_start();
    // No kernel writes the step: it was there before the first one began.
    const i64 token = blockIdx.y, warps = blockDim.x / 32;
    const bool real = token < step->tokens;
    if (real) fill_turns((float2 *)shared, turns, n_pairs, step->positions[token], magnitude);
    const i64 slot = real ? step->slots[token] : -1;
    __syncthreads();
    wait_for_previous();
    if (!real) return;
    const Turns turning = {(const float2 *)shared, n_pairs, neighbours != 0}, none = {nullptr, 0, false};
    const i64 key_parts = (key_size + PART - 1) / PART, keys_end = heads + kv_heads * key_parts;
    const i64 value_parts = (value_size + PART - 1) / PART, end = keys_end + kv_heads * value_parts;
    for (i64 unit = blockIdx.x * warps + warp(); unit < end; unit += gridDim.x * warps) {
        if (unit < heads) {
            const Head head = head_of(q + token * q_stride + unit * key_size, key_size, q_weight, q_eps);
            float *out = q_out + token * q_out_stride + unit * key_size;
            for (i64 c = lane(); c < key_size; c += 32) out[c] = turned(head, turning, c);
        } else if (slot >= 0 && unit < keys_end) {
            const i64 i = (unit - heads) / key_parts, start = (unit - heads) % key_parts * PART;
            u8 *layer = pages + slot / 16 * page_bytes + keys_at;
            const Head head = head_of(k + token * k_stride + i * key_size, key_size, k_weight, k_eps);
            store_part<Keys>(layer, i, slot % 16, key_size, start, head, turning);
        } else if (slot >= 0) {
            const i64 i = (unit - keys_end) / value_parts, start = (unit - keys_end) % value_parts * PART;
            u8 *layer = pages + slot / 16 * page_bytes + values_at;
            const Head head = head_of(v + token * v_stride + i * value_size, value_size, nullptr, 0.f);
            store_part<Values>(layer, i, slot % 16, value_size, start, head, none);
        }
    }
}
