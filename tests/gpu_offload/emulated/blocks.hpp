// Blocks of a grid, one after the other; where blocks wait for each other, in turns.
#pragma once
#include "fibers.hpp"

namespace emulator {

void run_fiber() {
    body();
    Fiber &fiber = fibers[current];
    if (!fiber.waited) fail("thread %d ended without wait_for_previous(): the next kernel would not wait for the one before", current);
    fiber.state = ENDED;
    to_scheduler();
}

void shuffle_order() {
    for (int i = count - 1; i > 0; i--) {
        const int j = random_below(i + 1), swapped = order[i];
        order[i] = order[j], order[j] = swapped;
    }
}

#ifndef __APPLE__
extern "C" unsigned char __start_hb_shared[] __attribute__((weak, visibility("hidden")));
extern "C" unsigned char __stop_hb_shared[] __attribute__((weak, visibility("hidden")));
unsigned char *statics() { return __start_hb_shared; }
size_t statics_bytes() { return __start_hb_shared ? size_t(__stop_hb_shared - __start_hb_shared) : 0; }
#else
unsigned char *statics() { return nullptr; }
size_t statics_bytes() { return 0; }
#endif

void enter(Block &entered) {
    block = &entered, fibers = entered.fibers, warps = entered.warps, meetings = entered.meetings;
    stacks = entered.stacks, shared_memory = entered.shared_memory, blockIdx = entered.index;
}

unsigned char *pages(size_t bytes) {
    return (unsigned char *)mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
}

// A block that is not in use.
std::vector<Block *> spare;
Block &fresh_block() {
    if (spare.empty()) {
        Block *made = new Block;
        made->stacks = pages(size_t(MOST_THREADS) * STACK_BYTES);
        made->shared_memory = pages(MARGIN + MOST_SHARED + MARGIN);
        spare.push_back(made);
    }
    Block &taken = *spare.back();
    spare.pop_back();
    return taken;
}

void begin_block(Three index, size_t shared) {
    block->index = blockIdx = index;
    for (int i = 0; i < count; i++) {
        Fiber &fiber = fibers[i];
        unsigned char *bottom = stacks + size_t(i) * STACK_BYTES;
        memset(bottom, INTACT, 64);
        fiber.stack = fresh_stack(bottom + STACK_BYTES, run_fiber);
        fiber.state = READY;
        fiber.waited = false;
        fiber.copies.clear();
        fiber.groups.clear();
    }
    memset(meetings, 0, 16 * sizeof(Meeting));
    for (int w = 0; w * 32 < count; w++) {
        warps[w].size = count - w * 32 < 32 ? count - w * 32 : 32;
        warps[w].arrived = 0;
    }
    memset(shared_memory, INTACT, MARGIN);
    memset(shared_memory + MARGIN, POISON, shared);
    memset(shared_memory + MARGIN + shared, INTACT, MARGIN);
    if (statics_bytes()) memset(statics(), POISON, statics_bytes());
}

// Nobody can go on: either all that are left stand at the barrier, or they wait for each other at different places.
void open_barrier() {
    if (early) {
        bool waits = false;
        for (int i = 0; i < count; i++)
            if (fibers[i].state == AT_WAIT) fibers[i].state = READY, waits = true;
        if (waits) return end_early();
    }
    int stuck = -1, ended = -1, at_barrier = -1;
    for (int i = 0; i < count; i++) {
        if (fibers[i].state == AT_COLLECTIVE && stuck < 0) stuck = i;
    }
    if (stuck >= 0) {
        const int first = stuck / 32 * 32;
        for (int i = first; i < first + warps[stuck / 32].size; i++) {
            if (fibers[i].state == ENDED) ended = i;
            if (fibers[i].state == AT_BARRIER) at_barrier = i;
        }
        const int other = ended >= 0 ? ended : at_barrier;
        snprintf(message, sizeof message, "warp %d: lane %d waits at %s, lane %d %s", stuck / 32, stuck % 32,
                 fibers[stuck].place, other % 32, ended >= 0 ? "has ended" : "is at __syncthreads");
        return;
    }
    for (int i = 0; i < count; i++)
        if (fibers[i].state == AT_MEETING) {
            const Meeting &meeting = meetings[fibers[i].meeting];
            snprintf(message, sizeof message, "thread %d waits at meet(%d, %d): %d threads have come", i,
                     fibers[i].meeting, meeting.threads / 32, meeting.arrived);
            return;
        }
    for (int i = 0; i < count; i++)
        if (fibers[i].state == AT_BARRIER) fibers[i].state = READY;
}

bool margins_intact(size_t shared) {
    for (int i = 0; i < MARGIN; i++)
        if (shared_memory[i] != INTACT || shared_memory[MARGIN + shared + i] != INTACT) return false;
    return true;
}

void check_block(size_t shared) {
    if (!margins_intact(shared)) snprintf(message, sizeof message, "wrote outside of %zu bytes of dynamic shared memory", shared);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < 64; j++)
            if (stacks[size_t(i) * STACK_BYTES + j] != INTACT) snprintf(message, sizeof message, "thread %d: stack overflow", i);
}

// Run what can run, each fiber once. `kind` 0: threads in ascending order, 1: descending, else: a new random order each
// time. Whether somebody moved.
bool run_once(u32 kind) {
    bool moved = false;
    for (int i = 0; i < count; i++) order[i] = kind == 1 ? count - 1 - i : i;
    if (kind > 1) shuffle_order();
    for (int i = 0; i < count; i++) {
        Fiber &fiber = fibers[order[i]];
        if (fiber.state != READY) continue;
        current = order[i], threadIdx = {u32(current), 0, 0}, moved = true;
        switch_stack(&scheduler_stack, fiber.stack);
        if (message[0]) return false;
        progress |= fiber.state != SPINNING;
    }
    return moved;
}

int count_of(State state) {
    int n = 0;
    for (int i = 0; i < count; i++) n += fibers[i].state == state;
    return n;
}

// Run the block until it has ended, or waits for other blocks.
void run_block(size_t shared, u32 kind) {
    for (;;) {
        const bool moved = run_once(kind);
        if (message[0]) return;
        if (count_of(ENDED) == count) return check_block(shared);
        if (moved) continue;
        if (count_of(SPINNING)) return;
        open_barrier();
        if (message[0]) return;
    }
}

bool has_ended() { return count_of(ENDED) == count; }

void leave() { block->statics.assign(statics(), statics() + statics_bytes()); }

// Continue a block that waited for others.
void resume(Block &resumed, size_t shared, u32 kind) {
    enter(resumed);
    if (statics_bytes()) memcpy(statics(), resumed.statics.data(), statics_bytes());
    for (int i = 0; i < count; i++)
        if (fibers[i].state == SPINNING) fibers[i].state = READY;
    run_block(shared, kind);
    if (has_ended()) spare.push_back(block);
    else leave();
}

// Blocks that have begun and wait for others take turns. From one spinning to the next is some way, too, hence the turns
// without any other change that are allowed.
void finish_blocks(std::vector<Block *> &begun, size_t shared, u32 kind) {
    for (int idle = 0;!begun.empty() && !message[0];) {
        std::vector<Block *> left;
        progress = false;
        for (Block *one : begun) {
            resume(*one, shared, kind);
            if (message[0]) return;
            if (!has_ended()) left.push_back(one);
        }
        idle = progress ? 0 : idle + 1;
        if (idle > 100)
            snprintf(message, sizeof message, "%zu blocks wait for others, and nothing changes", left.size());
        begun = left;
    }
}

void run_grid(const u32 *grid, int threads, size_t shared, u32 kind) {
    const u64 blocks = u64(grid[0]) * grid[1] * grid[2];
    gridDim = {grid[0], grid[1], grid[2]}, blockDim = {u32(threads), 1, 1};
    seed = (u64(kind) + 1) * 0x9e3779b97f4a7c15ull;
    count = threads;
    // Random orders of blocks: steps of a prime above any grid visit each block once.
    const u64 step = kind > 1 ? 1000003 : 1, first = kind > 1 ? u64(random_below(1 << 20)) : 0;
    std::vector<Block *> begun;
    for (u64 i = 0; i < blocks && !message[0]; i++) {
        u64 at = (first + i * step) % blocks;
        if (kind == 1) at = blocks - 1 - at;
        enter(fresh_block());
        begin_block({u32(at % grid[0]), u32(at / grid[0] % grid[1]), u32(at / grid[0] / grid[1])}, shared);
        run_block(shared, kind);
        end_early();
        if (has_ended()) spare.push_back(block);
        else leave(), begun.push_back(block);
    }
    finish_blocks(begun, shared, kind);
}
} // namespace emulator
