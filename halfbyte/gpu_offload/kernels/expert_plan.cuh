// Sorting a route's rows by expert, then by token: every block counts all choices and places those of its own expert.
#pragma once
#include <expert_tiles.cuh>
#include <sums.cuh>

struct Choices {
    const float *route; // [T, 2 * used], the numbers first
    i64 stride, used, count;
    WORD i32 expert(i64 choice) const { return i32(route[choice / used * stride + choice % used]); }
};

// How many of the threads before this one have a `mine`, and how many all have.
WORD i32 before_me(i32 mine, i32 &all) {
    __shared__ i32 of_warps[32];
    i32 sum = mine;
    for (int step = 1; step < 32; step *= 2) {
        const i32 lower = shuffle(sum, lane() >= step ? lane() - step : lane());
        if (lane() >= step) sum += lower;
    }
    if (lane() == 31) of_warps[warp()] = sum;
    __syncthreads();
    i32 before = sum - mine;
    all = 0;
    for (int w = 0; w < int(blockDim.x) / 32; w++) {
        if (w < warp()) before += of_warps[w];
        all += of_warps[w];
    }
    __syncthreads();
    return before;
}

// sources: the token of each row. places: the row of each choice, counted token by token.
__global__ void plan_experts(const float *route, i64 stride, i64 used, i64 experts, i64 tile_rows,
                                        const i32 *tokens, ExpertTiles *plan, i32 *sources, i32 *places) {
    DYNAMIC_SHARED(shared);
    i32 *counts = (i32 *)shared; // [experts]
    let_next_start();
    for (i64 e = threadIdx.x; e < experts; e += blockDim.x) counts[e] = 0;
    wait_for_previous();
    const Choices choices{route, stride, used, *tokens * used};
    const i64 mine = blockIdx.x;
    __syncthreads();
    for (i64 i = threadIdx.x; i < choices.count; i += blockDim.x) atomicAdd(counts + choices.expert(i), 1);
    __syncthreads();
    i32 row = 0, tile = 0;
    for (i64 e = threadIdx.x; e < mine; e += blockDim.x) {
        row += counts[e];
        tile += i32((counts[e] + tile_rows - 1) / tile_rows);
    }
    row = over_block<Sum>(row), tile = over_block<Sum>(tile);
    const i32 rows = counts[mine], tiles = i32((rows + tile_rows - 1) / tile_rows);
    if (mine == experts - 1 && threadIdx.x == 0) plan->rows = row + rows, plan->count = tile + tiles;
    for (i32 i = threadIdx.x; i < tiles; i += blockDim.x) {
        const i32 first = i * i32(tile_rows), left = rows - first;
        ((ExpertTile *)(plan + 1))[tile + i] = {i32(mine), row + first, left < tile_rows ? left : i32(tile_rows), 0};
    }
    for (i64 at = 0; rows > 0 && at < choices.count; at += blockDim.x) {
        const i64 i = at + threadIdx.x;
        const bool found = i < choices.count && choices.expert(i) == mine;
        i32 all;
        const i32 place = row + before_me(found, all);
        if (found) sources[place] = i32(i / used), places[i] = place;
        row += all;
    }
}
