// Attention of few tokens a sequence over its pages: as fast as pages can be read, and the same bits in any company.
//
// A block takes pieces of work (a token, up to eight heads of a KV head, a chunk of positions), its warps the chunk's pages
// in turn. What chunks have found is gathered by the last block of a token and a group to be done, in order of position.
#pragma once
#include <attention_gather.cuh>

// Where results go. Groups of heads that are whole units of columns make their planes at once; `together` says that they
// are not, or that the scale of a whole row is wanted: the last group of a token to be done makes other forms of its row.
struct Results {
    Forms to;
    i64 stride, width;
    bool together;
};

// Heads of a group, side by side in shared memory, to their columns of a token's row.
WORD void store_heads(const Results &results, i64 token, i64 column, const float *row, int n) {
    const Forms &to = results.to;
    if (to.rows)
        for (int c = threadIdx.x; c < n; c += blockDim.x) to.rows[token * results.stride + column + c] = row[c];
    if (!to.planes || results.together) return;
    for (int unit = warp(); unit < n / 256; unit += blockDim.x / 32) {
        const float4 *at = (const float4 *)row + 64 * unit + lane();
        store_unit(to, int(token), int(column / 256) + unit, padded_units(results.width), at[0], at[32]);
    }
}

// Whether this block is the last of `n` to come here; the count is zero again afterwards.
WORD bool last_to_arrive(i32 *count, int n) {
    __shared__ int before;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        before = atomicAdd(count, 1);
        if (before == n - 1) *count = 0;
    }
    __syncthreads();
    return before == n - 1;
}

WORD void finish_head(float *row, const float4 &sum, Weight weight, const float *sink, int c, int size) {
    float factor = 1.f;
    if (sink) {
        const float score = *sink * LOG2_E, largest = fmaxf(score, weight.largest);
        factor = exp2f(weight.largest - largest);
        weight.total = fmaf(weight.total, factor, exp2f(score - largest + LIFT));
    }
    const float x[4] = {sum.x, sum.y, sum.z, sum.w};
    for (int i = 0; i < 4; i++)
        if (4 * c + i < size) row[4 * c + i] = x[i] * factor / weight.total;
}

// The other forms of a token's row, by the last of its groups; `row` has room for all of it.
WORD void store_together(const Results &results, i64 token, int groups, i32 *count, float *row) {
    if (!results.together || !last_to_arrive(count, groups)) return;
    const uint4 *from = (const uint4 *)(results.to.rows + token * results.stride);
    for (int c = threadIdx.x; 4 * c < results.width; c += blockDim.x) ((uint4 *)row)[c] = load_fresh(from + c);
    __syncthreads();
    const Forms &to = results.to;
    store_row({nullptr, to.planes, to.records, to.halves, to.half_scales}, token, row, results.width, results.stride);
}

struct Shape {
    int heads, kv_heads, parts; // query heads of a KV head are cut into parts of up to eight
    i64 value_size;
    const float *sinks;
    WORD int groups() const { return kv_heads * parts; }
    WORD int shared() const { return heads / kv_heads; }
    WORD int first_head(int group) const { return group / parts * shared() + group % parts * 8; }
    WORD int heads_of(int group) const { return min(8, shared() - group % parts * 8); }
    WORD int quads() const { return int(value_size + 3) / 4; }
};

// Gathers what a block found of a piece of work, and of the token and group if it is the last one of it; says whether it is.
template <class Finding>
WORD bool gather(const Finding &found, const Work &work, const Shape &shape, const Results &results, const Left &left,
                 i32 *count, float *row) {
    const int heads = shape.heads_of(work.group), quads = shape.quads(), chunks = work.seen.chunks();
    const int first = shape.first_head(work.group), size = int(shape.value_size);
    for (int at = threadIdx.x; at < heads * quads; at += blockDim.x) {
        const int head = at / quads, c = at % quads;
        const float *sink = shape.sinks ? shape.sinks + first + head : nullptr;
        Weight weight;
        const float4 sum = found.get(head, c, weight);
        if (chunks == 1) finish_head(row + head * size, sum, weight, sink, c, size);
        else left.put(work.chunk, head, c, sum, weight);
    }
    if (chunks > 1) {
        if (!last_to_arrive(count, chunks)) return false;
        for (int at = threadIdx.x; at < heads * quads; at += blockDim.x) {
            const int head = at / quads, c = at % quads;
            const float *sink = shape.sinks ? shape.sinks + first + head : nullptr;
            Weight weight;
            const float4 sum = left.get(chunks, head, c, weight);
            finish_head(row + head * size, sum, weight, sink, c, size);
        }
    }
    __syncthreads();
    store_heads(results, work.token, i64(first) * size, row, heads * size);
    return true;
}

// `most` chunks a token, or one more. For each token and group, `left` has `room` chunks of up to eight heads, of whole
// quads of channels, with a weight each; `counts` has zeros for a token's groups, and one more. `scale` and `softcap` give exponents of two.
template <class Keys, class Values, int K_UNITS, int V_UNITS>
__global__ void attention_decode(const Step *step, const float *q, i64 q_stride, u8 *pages, i64 page_bytes, i64 keys_at,
                                 i64 values_at, float *rows, i64 stride, u8 *planes, Record *plane_records, u16 *halves,
                                 float *half_scales, i64 together, i64 heads,
                                 i64 kv_heads, i64 key_size, i64 value_size, float scale, float softcap, i64 window,
                                 const float *sinks, i64 causal, i64 most, i64 room, float *left, i32 *counts) {
    typedef Walk<Keys, Values, K_UNITS, V_UNITS> Walker;
    typedef Found<V_UNITS, Walker::WARPS> Finding;
    DYNAMIC_SHARED(shared);
    uint4 *queries = (uint4 *)shared;
    float *memory = (float *)(queries + 64 * K_UNITS), *row = memory + Finding::FLOATS;
    let_next_start();
    const Shape shape = {int(heads), int(kv_heads), int(heads / kv_heads + 7) / 8, value_size, sinks};
    const Results results = {{rows, planes, plane_records, halves, half_scales}, stride, heads * value_size,
                             together != 0};
    // No kernel writes the step: it was there before the first one began. Nor does one of this step write to pages
    // whose tokens all came before it, so that they are fetched while an earlier kernel is at work.
    Dealer dealer = {step, window, causal, most, shape.groups(), 0, 0};
    Work work;
    Walker walk;
    walk.kv = {pages, u32(page_bytes), keys_at, values_at, int(key_size), int(value_size)};
    int number = blockIdx.x;
    bool more = dealer.find(work, number), old = false;
    if (more) {
        walk.take(step, work, shape.parts);
        old = 16 * walk.page + 31 <= step->positions[work.token];
        if (old) walk.start();
    }
    wait_for_previous();
    if (more && !old) walk.start();
    while (more) {
        const int first = shape.first_head(work.group);
        const float power = place_queries<K_UNITS, Walker::WARPS>(queries, q + work.token * q_stride + first * key_size,
                                                                  shape.heads_of(work.group), int(key_size));
        __syncthreads();
        walk.clear();
        walk.run(queries, {scale * power, softcap});
        const Finding found(memory);
        found.put(walk, Values::SCALED);
        const Work done = work;
        // Loads of the next piece are under way while this one is gathered.
        more = dealer.find(work, number += gridDim.x);
        if (more) walk.take(step, work, shape.parts), walk.start();
        __syncthreads();
        const i64 place = i64(done.token) * shape.groups() + done.group, columns = 4 * shape.quads();
        const i64 records = room * min(8, shape.shared());
        float *own = left + place * records * (columns + 2);
        const Left parts = {own, (Weight *)(own + records * columns), shape.heads_of(done.group), int(columns)};
        i32 *count = counts + done.token * (shape.groups() + 1) + done.group;
        if (gather(found, done, shape, results, parts, count, row))
            store_together(results, done.token, shape.groups(), count + shape.groups() - done.group, (float *)shared);
        __syncthreads();
    }
}
