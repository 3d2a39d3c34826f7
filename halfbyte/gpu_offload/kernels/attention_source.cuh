// Where the queries of a piece of work come from.
#pragma once
#include <attention_walk.cuh>
#include <kv_write.cuh>

// A kernel before turned them, and stored keys and values.
struct Ready {
    static const bool STORES = false;
    const float *q;
    i64 stride;

    // What the first page of a warp may hold: no token of this step, of which a sequence has up to 16.
    WORD bool known(const Step *step, int token, int page) const { return 16 * page + 31 <= step->positions[token]; }
    WORD void prepare(const Step *, int) const {}
    WORD const float *queries(const Step *, const KvPlace &kv, const Work &work, int, int first, int, float *) const {
        return q + work.token * stride + i64(first) * kv.key_size;
    }
};

// Each block turns those that it needs. A sequence has one new token: who attends to it stores its key and value before,
// which parts of a KV head's heads do alike, and nobody else reads them.
template <class Keys, class Values> struct Fresh {
    static const bool STORES = true;
    const float *q;
    i64 stride;
    const float *q_weight;
    float q_eps;
    const float *k;
    i64 k_stride;
    const float *k_weight;
    float k_eps;
    const float *v;
    i64 v_stride;
    const u64 *speeds;
    float magnitude;
    float2 *pairs; // in shared memory
    Turns turns;

    WORD bool known(const Step *, int, int) const { return true; } // the page with the new token is loaded again
    // A barrier must follow.
    WORD void prepare(const Step *step, int token) const {
        fill_turns(pairs, speeds, turns.n_pairs, step->positions[token], magnitude);
    }
    WORD const float *queries(const Step *step, const KvPlace &kv, const Work &work, int kv_head, int first, int heads,
                              float *rows) const {
        const int slot = work.last() ? step->slots[work.token] : -1;
        for (int unit = warp(); unit < heads + (slot < 0 ? 0 : 2); unit += blockDim.x / 32) {
            if (unit < heads) {
                const float *x = q + work.token * stride + i64(first + unit) * kv.key_size;
                const Head head = head_of(x, kv.key_size, q_weight, q_eps);
                for (int c = lane(); c < kv.key_size; c += 32) rows[unit * kv.key_size + c] = turned(head, turns, c);
                continue;
            }
            u8 *page = kv.pages + i64(slot / 16) * kv.page_bytes;
            if (unit == heads) {
                const float *x = k + work.token * k_stride + i64(kv_head) * kv.key_size;
                const Head head = head_of(x, kv.key_size, k_weight, k_eps);
                store_part<Keys>(page + kv.keys_at, kv_head, slot % 16, kv.key_size, 0, head, turns);
            } else {
                const float *x = v + work.token * v_stride + i64(kv_head) * kv.value_size;
                const Head head = head_of(x, kv.value_size, nullptr, 0.f);
                store_part<Values>(page + kv.values_at, kv_head, slot % 16, kv.value_size, 0, head, {nullptr, 0, false});
            }
        }
        __syncthreads();
        return rows;
    }
};
