// Attention of few tokens a sequence over its pages: as fast as pages can be read, and the same bits in any company.
//
// Work is cut by position alone, into chunks of what a token and up to eight heads of a KV head see. A block takes
// neighbouring chunks, its warps their pages in turn, and leaves what each chunk found by itself; the last block of a
// token and a group to be done adds that up in order of position. So bits do not depend on who did how many chunks.
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

// Whether this block brings the last `own` of `n`; the count is zero again afterwards.
WORD bool last_to_arrive(i32 *count, int own, int n) {
    __shared__ int before;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        before = atomicAdd(count, own);
        if (before == n - own) *count = 0;
    }
    __syncthreads();
    return before == n - own;
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
    if (!results.together || !last_to_arrive(count, 1, groups)) return;
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

// What belongs to a piece of work: heads, where chunks leave what they found, and what results become.
struct Task {
    const Shape &shape;
    const Results &results;
    Work work;
    Left left;
    i32 *count;

    WORD int heads() const { return shape.heads_of(work.group); }
    WORD int first_head() const { return shape.first_head(work.group); }
    WORD bool alone() const { return work.seen.chunks() == 1; }
    WORD void finish(float *row, int head, int c, const float4 &sum, const Weight &weight) const {
        const float *sink = shape.sinks ? shape.sinks + first_head() + head : nullptr;
        finish_head(row + head * shape.value_size, sum, weight, sink, c, int(shape.value_size));
    }
    // What warps found of a chunk; into the heads' results where nothing else is to come.
    template <class Finding> WORD void leave(const Finding &found, int chunk, float *row) const {
        const int quads = shape.quads();
        for (int at = threadIdx.x; at < heads() * quads; at += blockDim.x) {
            const int head = at / quads, c = at % quads;
            Weight weight;
            const float4 sum = found.get(head, c, weight);
            if (alone()) finish(row, head, c, sum, weight);
            else left.put(chunk, head, c, sum, weight);
        }
    }
    // Of the token and group, if this block is the last one of it; says whether it is.
    WORD bool gather(float *row) const {
        const int quads = shape.quads(), chunks = work.seen.chunks();
        if (!work.whole() && !last_to_arrive(count, work.end - work.chunk, chunks)) return false;
        __syncthreads();
        for (int at = threadIdx.x; !alone() && at < heads() * quads; at += blockDim.x) {
            Weight weight;
            const float4 sum = left.get(chunks, at / quads, at % quads, weight);
            finish(row, at / quads, at % quads, sum, weight);
        }
        if (!alone()) __syncthreads();
        store_heads(results, work.token, i64(first_head()) * shape.value_size, row, heads() * int(shape.value_size));
        return true;
    }
};

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
    float *memory = (float *)(queries + 64 * K_UNITS); // what warps found of a chunk, and of the one before
    let_next_start();
    const Shape shape = {int(heads), int(kv_heads), int(heads / kv_heads + 7) / 8, value_size, sinks};
    const Results results = {{rows, planes, plane_records, halves, half_scales}, stride, heads * value_size,
                             together != 0};
    // No kernel writes the step: it was there before the first one began. Nor does one of this step write to pages
    // whose tokens all came before it, so that they are fetched while an earlier kernel is at work.
    Dealer dealer = {step, window, causal, most, shape.groups()};
    Work work;
    Walker walk;
    walk.kv = {pages, u32(page_bytes), keys_at, values_at, int(key_size), int(value_size)};
    dealer.begin();
    bool more = dealer.next(work), old = false;
    if (more) {
        walk.take(step, work, shape.parts);
        old = 16 * walk.page + 31 <= step->positions[work.token];
        if (old) walk.start();
    }
    wait_for_previous();
    if (more && !old) walk.start();
    while (more) {
        const i64 place = i64(work.token) * shape.groups() + work.group, columns = 4 * shape.quads();
        const i64 records = room * min(8, shape.shared());
        float *own = left + place * records * (columns + 2);
        const Left parts = {own, (Weight *)(own + records * columns), shape.heads_of(work.group), int(columns)};
        const Task task = {shape, results, work, parts, counts + work.token * (shape.groups() + 1) + work.group};
        const float *x = q + work.token * q_stride + task.first_head() * key_size;
        const float power = place_queries<K_UNITS, Walker::WARPS>(queries, x, task.heads(), int(key_size));
        __syncthreads();
        float *row = memory + Finding::FLOATS;
        for (int chunk = task.work.chunk; chunk < task.work.end; chunk++) {
            walk.clear();
            walk.run(walk.end_of(chunk), queries, {scale * power, softcap});
            row = memory + (chunk & 1 ? 0 : Finding::FLOATS); // all have read what was there of the chunk before
            const Finding found(memory + (chunk & 1 ? Finding::FLOATS : 0));
            found.put(walk, Values::SCALED);
            if (chunk == task.work.end - 1) {
                // Loads of the next piece are under way while this one is gathered.
                more = dealer.next(work);
                if (more) walk.take(step, work, shape.parts), walk.start();
            }
            __syncthreads();
            task.leave(found, chunk, row);
        }
        if (task.gather(row))
            store_together(results, task.work.token, shape.groups(), task.count + shape.groups() - task.work.group,
                           (float *)shared);
        __syncthreads();
    }
}
