// Attention of many tokens a sequence: tiles of queries against tiles of keys, by matrix instructions of halves.
//
// Queries are rounded to halves after a power of two has brought each row to size, weights are halves, sums are floats:
// results differ from those of few tokens by some 2^-11 of the values.
#pragma once
#include <attention_tiles.cuh>
#include <attention_walk.cuh>

// Neighbouring tokens of a sequence.
struct QueryTile {
    int token, position, count, sequence;
};

// Tiles are numbered sequence after sequence, in the order of tokens.
WORD bool find_tile(QueryTile &tile, const Step *step, int number, int size) {
    for (int token = 0; token < step->tokens;) {
        const int sequence = step->seq_of[token], position = step->positions[token];
        const int count = step->seq_len[sequence] - position, tiles = (count + size - 1) / size;
        if (number < tiles) {
            const int at = number * size;
            tile = {token + at, position + at, min(size, count - at), sequence};
            return true;
        }
        number -= tiles;
        token += count;
    }
    return false;
}

WORD float2 load_two(const float *x, int c, int size) {
    if (size % 2 == 0) return c < size ? *(const float2 *)(x + c) : make_float2(0.f, 0.f);
    return make_float2(c < size ? x[c] : 0.f, c + 1 < size ? x[c + 1] : 0.f);
}

// A warp's 16 queries as operands; gives the powers of rows g and g + 8. QueryRows that are not there are zeros.
template <int C> struct Queries {
    u32 a[C / 16][4];

    WORD float2 load(const float *q, i64 stride, int count, int size) {
        const int g = lane() / 4, t = lane() & 3;
        Power powers[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const float *row = q + (g + 8 * i) * stride;
            float peak = 0.f;
            for (int c = 2 * t; g + 8 * i < count && c < size; c += 8) {
                const float2 v = load_two(row, c, size);
                peak = fmaxf(peak, fmaxf(fabsf(v.x), fabsf(v.y)));
            }
            peak = fmaxf(peak, shuffle_xor(peak, 1));
            powers[i] = power_for(fmaxf(peak, shuffle_xor(peak, 2)));
#pragma unroll
            for (int k = 0; k < C / 8; k++) {
                const float2 v = g + 8 * i < count ? load_two(row, 8 * k + 2 * t, size) : make_float2(0.f, 0.f);
                a[k / 2][k % 2 * 2 + i] = floats_to_halves(v.x * powers[i].inverse, v.y * powers[i].inverse);
            }
        }
        return make_float2(powers[0].factor, powers[1].factor);
    }
};

// What a warp knows of its 16 rows: g in [0], g + 8 in [1].
template <int C, int KEYS> struct QueryRows {
    float sums[C / 8][4], largest[2], total[2];

    // Scores, exponents of two, become weights.
    WORD void weigh(float (&s)[KEYS / 8][4]) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float peak = largest[r];
#pragma unroll
            for (int j = 0; j < KEYS / 8; j++) peak = fmaxf(peak, fmaxf(s[j][2 * r], s[j][2 * r + 1]));
            peak = fmaxf(peak, shuffle_xor(peak, 1));
            peak = fmaxf(peak, shuffle_xor(peak, 2));
            const float factor = two_to(largest[r] - peak), base = peak - LIFT;
            largest[r] = peak;
            total[r] *= factor;
#pragma unroll
            for (int j = 0; j < C / 8; j++) sums[j][2 * r] *= factor, sums[j][2 * r + 1] *= factor;
#pragma unroll
            for (int j = 0; j < KEYS / 8; j++) {
                s[j][2 * r] = two_to(s[j][2 * r] - base), s[j][2 * r + 1] = two_to(s[j][2 * r + 1] - base);
                total[r] += s[j][2 * r] + s[j][2 * r + 1];
            }
        }
    }

    template <class Tile> WORD void add(const float (&p)[KEYS / 8][4], const u16 *tile) {
#pragma unroll
        for (int j = 0; j < KEYS / 16; j++) {
            const u32 a0 = floats_to_halves(p[2 * j][0], p[2 * j][1]), a1 = floats_to_halves(p[2 * j][2], p[2 * j][3]);
            const u32 a2 = floats_to_halves(p[2 * j + 1][0], p[2 * j + 1][1]);
            const u32 a3 = floats_to_halves(p[2 * j + 1][2], p[2 * j + 1][3]);
#pragma unroll
            for (int k = 0; k < C / 16; k++) {
                u32 b[4];
                Tile::values(b, tile, j, k);
                multiply_halves(sums[2 * k], a0, a1, a2, a3, b[0], b[1]);
                multiply_halves(sums[2 * k + 1], a0, a1, a2, a3, b[2], b[3]);
            }
        }
    }

    WORD void store(float *out, i64 stride, int count, int size, const float *sink) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float sum = total[r] + shuffle_xor(total[r], 1), factor = 1.f;
            sum += shuffle_xor(sum, 2);
            if (sink) {
                const float score = *sink * LOG2_E, peak = fmaxf(score, largest[r]);
                factor = two_to(largest[r] - peak);
                sum = fmaf(sum, factor, two_to(score - peak + LIFT));
            }
            const int row = lane() / 4 + 8 * r;
            if (row >= count) continue;
            factor /= sum;
#pragma unroll
            for (int j = 0; j < C / 8; j++) {
                const int c = 8 * j + 2 * (lane() & 3);
                const float x = sums[j][2 * r] * factor, y = sums[j][2 * r + 1] * factor;
                if (size % 2 == 0 && c < size) *(float2 *)(out + row * stride + c) = make_float2(x, y);
                if (size % 2 && c < size) out[row * stride + c] = x;
                if (size % 2 && c + 1 < size) out[row * stride + c + 1] = y;
            }
        }
    }
};

// Scores of the warp's queries with a tile of keys from position `first` on, as exponents of two; `row` is the position of
// row g, and `edge` says that not every query sees every key.
template <class Tile, int C, int KEYS>
WORD void score_tile(float (&s)[KEYS / 8][4], const Queries<C> &queries, const u16 *tile, float2 powers, float softcap,
                     bool edge, int first, int row, int end, i64 window) {
#pragma unroll
    for (int j = 0; j < KEYS / 8; j++) s[j][0] = s[j][1] = s[j][2] = s[j][3] = 0.f;
#pragma unroll
    for (int k = 0; k < C / 16; k++)
#pragma unroll
        for (int j = 0; j < KEYS / 16; j++) {
            u32 b[4];
            const u32 (&a)[4] = queries.a[k];
            Tile::keys(b, tile, j, k);
            multiply_halves(s[2 * j], a[0], a[1], a[2], a[3], b[0], b[1]);
            multiply_halves(s[2 * j + 1], a[0], a[1], a[2], a[3], b[2], b[3]);
        }
#pragma unroll
    for (int i = 0; i < KEYS / 2; i++) {
        float &x = s[i / 4][i % 4];
        x *= i / 2 % 2 ? powers.y : powers.x;
        if (softcap != 0.f) x = softcap * tanhf(x);
        if (!edge) continue;
        const int key = first + i / 4 * 8 + 2 * (lane() & 3) + i % 2, own = row + i / 2 % 2 * 8;
        if (key > own || key >= end || own - key >= window) x = NOTHING;
    }
}

// A block takes 16 queries a warp of one head. Tiles come last first, since the last of a long sequence see most keys.
template <class Keys, class Values, int K_SIZE, int V_SIZE, int KEYS, int WARPS>
__global__ void attention_prompt(const Step *step, const float *q, i64 q_stride, u8 *pages, i64 page_bytes, i64 keys_at,
                                 i64 values_at, float *out, i64 stride, i64 heads, i64 kv_heads, i64 key_size,
                                 i64 value_size, float scale, float softcap, i64 window, const float *sinks, i64 causal) {
    typedef KvTile<Keys, K_SIZE, KEYS, 32 * WARPS> KeyTile;
    typedef KvTile<Values, V_SIZE, KEYS, 32 * WARPS> ValueTile;
    DYNAMIC_SHARED(shared);
    let_next_start();
    QueryTile own;
    // No kernel writes the step: it was there before the first one began.
    const bool found = find_tile(own, step, gridDim.y - 1 - blockIdx.y, 16 * WARPS);
    wait_for_previous();
    if (!found) return;
    const i64 head = blockIdx.x, kv_head = head / (heads / kv_heads);
    const i32 *table = step->page_table + i64(own.sequence) * step->max_pages;
    const int end = causal ? own.position + own.count : step->seq_len[own.sequence];
    const int begin = own.position + 1 > window ? int(own.position + 1 - window) : 0;
    const auto fill = [&](int first) {
        u8 *to = shared + first / KEYS % 2 * (KeyTile::BYTES + ValueTile::BYTES);
        KeyTile::fill((u16 *)to, pages, page_bytes, keys_at, table, kv_head, key_size, first, begin, end);
        ValueTile::fill((u16 *)(to + KeyTile::BYTES), pages, page_bytes, values_at, table, kv_head, value_size, first, begin,
                        end);
        commit_copies();
    };
    fill(begin / KEYS * KEYS);
    const int mine = 16 * warp(), count = own.count - mine, row = own.position + mine;
    Queries<K_SIZE> queries;
    float2 powers = queries.load(q + (own.token + mine) * q_stride + head * key_size, q_stride, count, int(key_size));
    powers = make_float2(powers.x * scale, powers.y * scale);
    QueryRows<V_SIZE, KEYS> rows = {{}, {NOTHING, NOTHING}, {0.f, 0.f}};
    for (int first = begin / KEYS * KEYS; first < end; first += KEYS) {
        wait_for_copies<0>();
        __syncthreads();
        if (first + KEYS < end) fill(first + KEYS);
        // A warp whose queries are all before these keys, or none, goes on to the next barrier.
        if (count <= 0 || (causal && first > row + 15)) continue;
        const u16 *tile = (const u16 *)(shared + first / KEYS % 2 * (KeyTile::BYTES + ValueTile::BYTES));
        const int last = causal ? row + lane() / 4 : end;
        const bool edge = (causal && first + KEYS - 1 > row) || first + KEYS > end || row + 15 - first >= window;
        float s[KEYS / 8][4];
        score_tile<KeyTile, K_SIZE, KEYS>(s, queries, tile, powers, softcap, edge, first, last, end, window);
        rows.weigh(s);
        rows.template add<ValueTile>(s, tile + KeyTile::BYTES / 2);
    }
    rows.store(out + (own.token + mine) * stride + head * value_size, stride, count, int(value_size),
               sinks ? sinks + head : nullptr);
}
