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

// A warp's queries as operands, 16 a tile: of one tile in registers, of more in shared memory.
template <int C, int TILES> struct Queries {
    static const int BYTES = TILES == 1 ? 0 : TILES * C * 32; // of a warp
    u32 own[TILES == 1 ? C / 16 : 1][4];
    uint4 *memory;

    WORD void get(u32 (&a)[4], int tile, int k) const {
        if constexpr (TILES == 1) {
            a[0] = own[k][0], a[1] = own[k][1], a[2] = own[k][2], a[3] = own[k][3];
        } else {
            const uint4 v = memory[(tile * (C / 16) + k) * 32 + lane()];
            a[0] = v.x, a[1] = v.y, a[2] = v.z, a[3] = v.w;
        }
    }

    // Gives the powers of rows g and g + 8 of a tile. Rows that are not there are zeros; a negative scale of scores is one
    // of the queries.
    WORD float2 load(int tile, const float *q, i64 stride, int count, int size, bool negative) {
        const int g = lane() / 4, t = lane() & 3;
        Power powers[2];
        for (int i = 0; i < 2; i++) {
            const float *row = q + (g + 8 * i) * stride;
            float peak = 0.f;
            for (int c = 2 * t; g + 8 * i < count && c < size; c += 8) {
                const float2 v = load_two(row, c, size);
                peak = fmaxf(peak, fmaxf(fabsf(v.x), fabsf(v.y)));
            }
            peak = fmaxf(peak, shuffle_xor(peak, 1));
            powers[i] = power_for(fmaxf(peak, shuffle_xor(peak, 2)));
        }
#pragma unroll
        for (int k = 0; k < C / 16; k++) {
            u32 a[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int row = g + i % 2 * 8, c = 16 * k + i / 2 * 8 + 2 * t;
                const float2 v = row < count ? load_two(q + row * stride, c, size) : make_float2(0.f, 0.f);
                const float inverse = negative ? -powers[i % 2].inverse : powers[i % 2].inverse;
                a[i] = floats_to_halves(v.x * inverse, v.y * inverse);
            }
            if constexpr (TILES == 1) own[k][0] = a[0], own[k][1] = a[1], own[k][2] = a[2], own[k][3] = a[3];
            else memory[(tile * (C / 16) + k) * 32 + lane()] = make_uint4(a[0], a[1], a[2], a[3]);
        }
        return make_float2(powers[0].factor, powers[1].factor);
    }
};

// What a warp knows of a tile's 16 rows: g in [0], g + 8 in [1].
template <int C, int KEYS> struct QueryRows {
    float sums[C / 8][4], largest[2], total[2];

    WORD void clear() {
#pragma unroll
        for (int i = 0; i < C / 2; i++) sums[i / 4][i % 4] = 0.f;
        largest[0] = largest[1] = NOTHING, total[0] = total[1] = 0.f;
    }

    // Scores become weights; times `powers`, which are positive and not too small to hide what is hidden, they are exponents
    // of two. Of a query that sees none of the keys all weights are zero.
    WORD void weigh(float (&s)[KEYS / 8][4], float2 powers) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float power = r ? powers.y : powers.x;
            float peak = s[0][2 * r];
#pragma unroll
            for (int j = 0; j < KEYS / 8; j++) peak = fmaxf(peak, fmaxf(s[j][2 * r], s[j][2 * r + 1]));
            peak = fmaxf(peak, shuffle_xor(peak, 1));
            peak = fmaxf(peak, shuffle_xor(peak, 2));
            peak = peak == NOTHING ? largest[r] : fmaxf(largest[r], peak * power);
            const float factor = two_to(largest[r] - peak), base = peak == NOTHING ? 0.f : LIFT - peak;
            largest[r] = peak;
            total[r] *= factor;
            if (__any_sync(0xffffffffu, factor != 1.f)) {
#pragma unroll
                for (int j = 0; j < C / 8; j++) sums[j][2 * r] *= factor, sums[j][2 * r + 1] *= factor;
            }
#pragma unroll
            for (int j = 0; j < KEYS / 4; j++) {
                float &x = s[j / 2][2 * r + j % 2];
                x = two_to(fmaf(x, power, base));
                total[r] += x;
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

// Adds to the sums of each tile of queries the values of a tile of keys, by their weights.
template <class Tile, int C, int KEYS, int TILES>
WORD void add_tile(QueryRows<C, KEYS> (&rows)[TILES], const float (&p)[TILES][KEYS / 8][4], const u16 *tile) {
#pragma unroll
    for (int j = 0; j < KEYS / 16; j++) {
        u32 a[TILES][4];
#pragma unroll
        for (int m = 0; m < TILES; m++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float (&pair)[4] = p[m][2 * j + i / 2];
                a[m][i] = floats_to_halves(pair[i % 2 * 2], pair[i % 2 * 2 + 1]);
            }
#pragma unroll
        for (int k = 0; k < C / 16; k++) {
            u32 b[4];
            Tile::values(b, tile, j, k);
#pragma unroll
            for (int m = 0; m < TILES; m++) {
                multiply_halves(rows[m].sums[2 * k], a[m][0], a[m][1], a[m][2], a[m][3], b[0], b[1]);
                multiply_halves(rows[m].sums[2 * k + 1], a[m][0], a[m][1], a[m][2], a[m][3], b[2], b[3]);
            }
        }
    }
}

// Scores of a warp's queries with a tile of keys.
template <class Tile, int C, int KEYS, int TILES>
WORD void score_tile(float (&s)[TILES][KEYS / 8][4], const Queries<C, TILES> &queries, const u16 *tile) {
#pragma unroll
    for (int i = 0; i < TILES * KEYS / 2; i++) s[i / (KEYS / 2)][i / 4 % (KEYS / 8)][i % 4] = 0.f;
#pragma unroll
    for (int k = 0; k < C / 16; k++) {
        u32 a[TILES][4];
#pragma unroll
        for (int m = 0; m < TILES; m++) queries.get(a[m], m, k);
#pragma unroll
        for (int j = 0; j < KEYS / 16; j++) {
            u32 b[4];
            Tile::keys(b, tile, j, k);
#pragma unroll
            for (int m = 0; m < TILES; m++) {
                multiply_halves(s[m][2 * j], a[m][0], a[m][1], a[m][2], a[m][3], b[0], b[1]);
                multiply_halves(s[m][2 * j + 1], a[m][0], a[m][1], a[m][2], a[m][3], b[2], b[3]);
            }
        }
    }
}

// What queries may see of keys.
struct Sight {
    int end;
    bool causal;
    int window;
};

// Scores of keys from position `first` on with queries from `row` on: capped, and hidden where a query does not see a key.
template <int KEYS>
WORD void cap_and_hide(float (&s)[KEYS / 8][4], float2 &powers, float softcap, int first, int row, const Sight &sight) {
    if (softcap != 0.f) {
#pragma unroll
        for (int i = 0; i < KEYS / 2; i++) {
            float &x = s[i / 4][i % 4];
            x = softcap * tanhf(x * (i / 2 % 2 ? powers.y : powers.x));
        }
        powers = make_float2(1.f, 1.f);
    }
    if ((sight.causal && first + KEYS - 1 > row) || first + KEYS > sight.end || row + 15 - first >= sight.window) {
#pragma unroll
        for (int i = 0; i < KEYS / 2; i++) {
            const int key = first + i / 4 * 8 + 2 * (lane() & 3) + i % 2, own = row + lane() / 4 + i / 2 % 2 * 8;
            if ((sight.causal && key > own) || key >= sight.end || own - key >= sight.window) s[i / 4][i % 4] = NOTHING;
        }
    }
}

// A block takes 16 * TILES queries a warp of one head. Blocks of a sequence's last queries, which see most keys, begin.
template <class Keys, class Values, int K_SIZE, int V_SIZE, int KEYS, int WARPS, int TILES>
__global__ void attention_prompt(const Step *step, const float *q, i64 q_stride, u8 *pages, i64 page_bytes, i64 keys_at,
                                 i64 values_at, float *out, i64 stride, i64 heads, i64 kv_heads, i64 key_size,
                                 i64 value_size, float scale, float softcap, i64 window, const float *sinks, i64 causal) {
    typedef KvTile<Keys, K_SIZE, KEYS, 32 * WARPS> KeyTile;
    typedef KvTile<Values, V_SIZE, KEYS, 32 * WARPS> ValueTile;
    const int PAIR = KeyTile::BYTES + ValueTile::BYTES;
    DYNAMIC_SHARED(shared);
    let_next_start();
    QueryTile own;
    // No kernel writes the step: it was there before the first one began.
    const bool found = find_tile(own, step, gridDim.y - 1 - blockIdx.y, 16 * TILES * WARPS);
    wait_for_previous();
    if (!found) return;
    const int head = blockIdx.x, kv_head = head / int(heads / kv_heads);
    const i32 *table = step->page_table + i64(own.sequence) * step->max_pages;
    const Sight sight = {causal ? own.position + own.count : step->seq_len[own.sequence], causal != 0, int(window)};
    const int begin = own.position + 1 > window ? int(own.position + 1 - window) : 0, start = begin / KEYS * KEYS;
    const auto fill = [&](int first) {
        u16 *to = (u16 *)(shared + first / KEYS % 2 * PAIR);
        i32 ids[KEYS / 16];
#pragma unroll
        for (int i = 0; i < KEYS / 16; i++) ids[i] = first + 16 * i < sight.end ? table[first / 16 + i] : 0;
        KeyTile::fill(to, pages + keys_at, page_bytes, ids, kv_head, key_size, first, begin, sight.end);
        ValueTile::fill(to + KeyTile::BYTES / 2, pages + values_at, page_bytes, ids, kv_head, value_size, first, begin,
                        sight.end);
        commit_copies();
    };
    fill(start);
    const int mine = 16 * TILES * warp(), count = own.count - mine, row = own.position + mine;
    Queries<K_SIZE, TILES> queries;
    queries.memory = (uint4 *)(shared + 2 * PAIR + warp() * queries.BYTES);
    QueryRows<V_SIZE, KEYS> rows[TILES];
    float2 powers[TILES];
    q += (own.token + mine) * q_stride + head * key_size;
#pragma unroll
    for (int m = 0; m < TILES; m++) {
        powers[m] = queries.load(m, q + 16 * m * q_stride, q_stride, count - 16 * m, int(key_size), scale < 0.f);
        powers[m] = make_float2(fmaxf(powers[m].x * fabsf(scale), 1e-30f), fmaxf(powers[m].y * fabsf(scale), 1e-30f));
        rows[m].clear();
    }
    for (int first = start; first < sight.end; first += KEYS) {
        wait_for_copies<0>();
        __syncthreads();
        if (first + KEYS < sight.end) fill(first + KEYS);
        // A warp whose queries are all before these keys, or none, goes on to the next barrier.
        if (count <= 0 || (causal && first > row + 16 * TILES - 1)) continue;
        const u16 *tile = (const u16 *)(shared + first / KEYS % 2 * PAIR);
        float s[TILES][KEYS / 8][4];
        score_tile<KeyTile, K_SIZE, KEYS, TILES>(s, queries, tile);
#pragma unroll
        for (int m = 0; m < TILES; m++) {
            float2 own_powers = powers[m];
            cap_and_hide<KEYS>(s[m], own_powers, softcap, first, row + 16 * m, sight);
            rows[m].weigh(s[m], own_powers);
        }
        add_tile<ValueTile, V_SIZE, KEYS, TILES>(rows, s, tile + KeyTile::BYTES / 2);
    }
    out += (own.token + mine) * stride + head * value_size;
#pragma unroll
    for (int m = 0; m < TILES; m++)
        rows[m].store(out + 16 * m * stride, stride, count - 16 * m, int(value_size), sinks ? sinks + head : nullptr);
}
