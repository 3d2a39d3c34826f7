// A warp's share of the pages of chunks, one after the other: the largest score, weights against it, and their sums.
#pragma once
#include <attention_page.cuh>
#include <attention_queries.cuh>
#include <attention_values.cuh>
#include <attention_work.cuh>

constexpr float LOG2_E = 1.4426950408889634f;
constexpr float NOTHING = -3e38f; // a score that weighs nothing beside any other
constexpr float LIFT = 12.f;      // weights are up to 2^12, so that their lower halves have all bits

struct KvPlace {
    u8 *pages;
    u32 page_bytes;
    i64 keys_at, values_at;
    int key_size, value_size;
};

struct Scoring {
    float scale, softcap; // scale * softcap * tanh(score), without a soft cap scale * score: exponents of two
    WORD float operator()(float score) const { return softcap == 0.f ? score * scale : softcap * tanhf(score * scale); }
};

template <class Keys, class Values, int K_UNITS, int V_UNITS> struct Walk {
    static const bool WIDE = Keys::WIDE || Values::WIDE;
    static const bool TIGHT = V_UNITS > 2 && (Keys::SCALED || Values::SCALED);
    static const int K_MOST = WIDE || TIGHT ? 1 : V_UNITS > 2 ? 2 : 4, K_BATCH = K_UNITS < K_MOST ? K_UNITS : K_MOST;
    static const int V_MOST = WIDE || V_UNITS > 2 ? 1 : 2, V_BATCH = V_UNITS < V_MOST ? V_UNITS : V_MOST;
    // Loads of the next page are under way while this one is worked on, where registers suffice.
    static const bool AHEAD = K_BATCH == K_UNITS && V_BATCH == V_UNITS && !WIDE;
    static const int WARPS = 4;

    KvPlace kv;
    const i32 *table; // pages of the sequence
    int kv_head;
    Seen seen;
    float sums[V_UNITS][8][4], largest, total; // of head lane / 4; `total` is of this lane's tokens only
    KeysOfPage<Keys, K_BATCH> keys;
    ValuesOfPage<Values, V_BATCH> values;
    KvHead<Keys> key_head;
    KvHead<Values> value_head;

    WORD void find(int page) {
        u8 *at = kv.pages + i64(table[page]) * kv.page_bytes;
        key_head = KvHead<Keys>(at + kv.keys_at, kv_head, kv.key_size);
        value_head = KvHead<Values>(at + kv.values_at, kv_head, kv.value_size);
    }
    WORD void load_keys(int unit) { keys.load(key_head, 32 * unit, padded_channels(kv.key_size)); }
    WORD void load_values(int unit) { values.load(value_head, 64 * unit, padded_channels(kv.value_size)); }
    WORD bool visible(int position) const { return position >= seen.begin && position < seen.end; }
    WORD bool whole(int page) const { return 16 * page >= seen.begin && 16 * page + 16 <= seen.end; }

    // The warp's pages of its block's chunks are `page`, page + WARPS, ... up to `last`; chunks are whole rounds of them.
    int page, last;

    WORD void take(const Step *step, const Work &work, int parts) {
        table = step->page_table + i64(step->seq_of[work.token]) * step->max_pages;
        kv_head = work.group / parts, seen = work.seen;
        const int first = max((seen.first() + work.chunk) * seen.length, seen.begin) / 16;
        page = first + ((warp() - first) & (WARPS - 1));
        last = (min((seen.first() + work.end) * seen.length, seen.end) - 1) / 16;
    }
    WORD int end_of(int chunk) const { return min((seen.first() + chunk + 1) * seen.length / 16, last + 1); }

    WORD void start() {
        if (page > last) return;
        find(page);
        if (AHEAD) load_keys(0), load_values(0);
    }

    WORD void clear() {
#pragma unroll
        for (int i = 0; i < V_UNITS * 32; i++) sums[i / 32][i / 4 % 8][i % 4] = 0.f;
        largest = NOTHING, total = 0.f;
    }

    WORD void score(float (&scores)[4], const uint4 *queries) {
        const int first = 16 * page + lane() / 4;
        const bool shown[2] = {visible(first), visible(first + 8)};
#pragma unroll
        for (int u = 0; u < K_UNITS; u += K_BATCH) {
            if (!AHEAD) load_keys(u);
            if (!whole(page)) keys.hide(shown);
            score_page(scores, keys, key_head, 32 * u, padded_channels(kv.key_size), queries);
        }
    }

    // Scores become weights; sums so far are scaled to the new largest score.
    WORD void weigh(float (&p)[4], const bool (&shown)[4], const Scoring &scoring) {
        float peak = NOTHING;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            p[i] = shown[i] ? scoring(p[i]) : NOTHING;
            peak = fmaxf(peak, p[i]);
        }
        peak = fmaxf(peak, shuffle_xor(peak, 1));
        peak = fmaxf(fmaxf(peak, shuffle_xor(peak, 2)), largest);
        const float factor = exp2f(largest - peak);
        largest = peak;
        total *= factor;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            p[i] = exp2f(p[i] - (peak - LIFT));
            total += p[i];
        }
#pragma unroll
        for (int i = 0; i < V_UNITS * 32; i++) sums[i / 32][i / 4 % 8][i % 4] *= factor;
    }

    WORD void add(const float (&p)[4], const bool (&shown)[4], const KvHead<Values> &head, bool all) {
#pragma unroll
        for (int w = 0; w < V_UNITS; w += V_BATCH) {
            if (!AHEAD) load_values(w);
            if (!all) values.hide(shown);
            add_page(sums + w, values, p, head, 64 * w);
        }
    }

    // Those below `end`; the first one was started, and so is the one behind.
    WORD void run(int end, const uint4 *queries, Scoring scoring) {
        for (; page < end; page += WARPS) {
            const int first = 16 * page + 2 * (lane() & 3);
            const bool shown[4] = {visible(first), visible(first + 1), visible(first + 8), visible(first + 9)};
            const bool all = whole(page), more = page + WARPS <= last;
            const KvHead<Values> head = value_head;
            float p[4] = {};
            score(p, queries);
            if (AHEAD && more) find(page + WARPS), load_keys(0);
            weigh(p, shown, scoring);
            add(p, shown, head, all);
            if (!AHEAD && more) find(page + WARPS);
            if (AHEAD && more) load_values(0);
        }
    }
};
