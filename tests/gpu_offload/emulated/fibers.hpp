// Threads of a CUDA block as fibers of one thread of the CPU. A fiber runs until it has to meet others: all of its block
// at a barrier, all of its warp at a collective. In which order they run is decided by a seed.
#pragma once
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <vector>

#include "switch.hpp"
#include "watch.hpp"

namespace {
struct Three { unsigned x, y, z; };
Three threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {

typedef unsigned int u32;
typedef unsigned long long u64;
enum { MOST_THREADS = 1024, STACK_BYTES = 1 << 16, MARGIN = 1024, MOST_SHARED = 256 << 10, POISON = 0xff, INTACT = 0xa5 };

enum State { READY, AT_BARRIER, AT_MEETING, AT_COLLECTIVE, AT_WAIT, ENDED };

struct Copy {
    void *to;
    const void *from;
};

// Some warps of a block that meet.
struct Meeting {
    int threads, arrived;
};

struct Fiber {
    void *stack;
    State state;
    int meeting;
    const char *place; // where it waits
    bool waited;       // for the previous kernel
    std::vector<Copy> copies;
    std::vector<size_t> groups; // where groups of copies end
};

// What a lane brings to a collective and takes from it.
struct Lane {
    u32 in[12], out[4];
};
typedef void (*Work)(Lane *lanes, int count);

struct Warp {
    Lane lanes[32];
    int size, arrived;
    Work work;
};

Fiber fibers[MOST_THREADS];
Warp warps[MOST_THREADS / 32];
Meeting meetings[16];
unsigned char *stacks;
alignas(1024) unsigned char shared_memory[MARGIN + MOST_SHARED + MARGIN];
int count, current, order[MOST_THREADS];
u64 seed;
void *scheduler_stack;
char message[512];
void (*body)();

int random_below(int n) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return int(seed % u64(n));
}

void to_scheduler() { switch_stack(&fibers[current].stack, scheduler_stack); }

// The block is given up: fibers hold nothing that would have to be undone.
__attribute__((format(printf, 1, 2))) void fail(const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    to_scheduler();
    abort();
}

void barrier() {
    fibers[current].state = AT_BARRIER;
    fibers[current].place = "__syncthreads";
    to_scheduler();
}

void meet_warps(int number, int warp_count) {
    if (number < 1 || number > 15) fail("meet(%d, %d): numbers are 1 to 15", number, warp_count);
    Meeting &meeting = meetings[number];
    if (meeting.arrived && meeting.threads != 32 * warp_count)
        fail("meet(%d, %d) while others meet there with %d threads", number, warp_count, meeting.threads);
    meeting.threads = 32 * warp_count;
    fibers[current].state = AT_MEETING, fibers[current].meeting = number, fibers[current].place = "meet";
    if (++meeting.arrived == meeting.threads) {
        meeting.arrived = 0;
        for (int i = 0; i < count; i++)
            if (fibers[i].state == AT_MEETING && fibers[i].meeting == number) fibers[i].state = READY;
    }
    to_scheduler();
}

Lane &mine() { return warps[current / 32].lanes[current % 32]; }

// All lanes of a warp meet; the last one does the work of all.
void meet(const char *place, Work work) {
    Warp &warp = warps[current / 32];
    if (warp.arrived && warp.work != work) {
        int other = current / 32 * 32;
        while (fibers[other].state != AT_COLLECTIVE) other++;
        fail("warp %d: lane %d is at %s while lane %d waits at %s", current / 32, current % 32, place, other % 32,
             fibers[other].place);
    }
    warp.work = work;
    fibers[current].state = AT_COLLECTIVE;
    fibers[current].place = place;
    if (++warp.arrived == warp.size) {
        work(warp.lanes, warp.size);
        warp.arrived = 0;
        for (int i = 0; i < warp.size; i++) fibers[current / 32 * 32 + i].state = READY;
    }
    to_scheduler();
}

// In the first block all threads come to their wait before one of them goes on, so that what they did until then is seen.
void wait_for_previous() {
    fibers[current].waited = true;
    if (!early) return;
    fibers[current].state = AT_WAIT;
    to_scheduler();
}

// --- copies that arrive only when waited for ----------------------------------------------------------------------------

void begin_copy(void *to, const void *from) {
    if (u64(to) % 16 || u64(from) % 16) fail("begin_copy_16: an address is not aligned to 16 bytes");
    memset(to, POISON, 16);
    fibers[current].copies.push_back({to, from});
}

void commit_copies() { fibers[current].groups.push_back(fibers[current].copies.size()); }

void finish_copies(size_t under_way) {
    Fiber &fiber = fibers[current];
    if (fiber.groups.size() <= under_way) return;
    const size_t groups = fiber.groups.size() - under_way, copies = fiber.groups[groups - 1];
    for (size_t i = 0; i < copies; i++) memcpy(fiber.copies[i].to, fiber.copies[i].from, 16);
    fiber.copies.erase(fiber.copies.begin(), fiber.copies.begin() + copies);
    fiber.groups.erase(fiber.groups.begin(), fiber.groups.begin() + groups);
    for (size_t &end : fiber.groups) end -= copies;
}

// --- a block ------------------------------------------------------------------------------------------------------------

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

void begin_block(int threads, u32 kind) {
    if (!stacks) {
        const size_t bytes = size_t(MOST_THREADS) * STACK_BYTES;
        stacks = (unsigned char *)mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
    }
    count = threads;
    for (int i = 0; i < count; i++) {
        Fiber &fiber = fibers[i];
        unsigned char *bottom = stacks + size_t(i) * STACK_BYTES;
        memset(bottom, INTACT, 64);
        fiber.stack = fresh_stack(bottom + STACK_BYTES, run_fiber);
        fiber.state = READY;
        fiber.waited = false;
        fiber.copies.clear();
        fiber.groups.clear();
        order[i] = kind == 1 ? count - 1 - i : i;
    }
    memset(meetings, 0, sizeof meetings);
    for (int w = 0; w * 32 < count; w++) {
        warps[w].size = count - w * 32 < 32 ? count - w * 32 : 32;
        warps[w].arrived = 0;
    }
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

// `kind` 0: threads in ascending order, 1: descending, else: a new random order after each round.
void run_block(int threads, size_t shared, u32 kind) {
    begin_block(threads, kind);
    memset(shared_memory, INTACT, MARGIN);
    memset(shared_memory + MARGIN, POISON, shared);
    memset(shared_memory + MARGIN + shared, INTACT, MARGIN);
    for (bool alive = true; alive;) {
        bool moved = false;
        if (kind > 1) shuffle_order();
        alive = false;
        for (int i = 0; i < count; i++) {
            Fiber &fiber = fibers[order[i]];
            if (fiber.state == READY) {
                current = order[i], threadIdx = {u32(current), 0, 0}, moved = true;
                switch_stack(&scheduler_stack, fiber.stack);
                if (message[0]) return;
            }
            alive |= fiber.state != ENDED;
        }
        if (alive && !moved) open_barrier();
        if (message[0]) return;
    }
    check_block(shared);
}
} // namespace emulator
} // namespace
