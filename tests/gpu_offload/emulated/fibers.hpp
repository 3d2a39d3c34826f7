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

#include "emulator.hpp"
#include "switch.hpp"
#include "watch.hpp"

Three threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {

enum { MOST_THREADS = 1024, STACK_BYTES = 1 << 16, MOST_SHARED = 256 << 10, POISON = 0xff, INTACT = 0xa5 };

enum State { READY, AT_BARRIER, AT_MEETING, AT_COLLECTIVE, AT_WAIT, SPINNING, ENDED };

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

struct Warp {
    Lane lanes[32];
    int size, arrived;
    Work work;
};

// A block that has begun. There are several where blocks wait for each other.
struct Block {
    Three index;
    Fiber fibers[MOST_THREADS];
    Warp warps[MOST_THREADS / 32];
    Meeting meetings[16];
    unsigned char *stacks, *shared_memory;
    std::vector<unsigned char> statics; // its static shared memory while another block runs
};

// Of the block that runs.
Block *block;
Fiber *fibers;
Warp *warps;
Meeting *meetings;
unsigned char *stacks, *shared_memory;

int count, current, order[MOST_THREADS];
bool progress; // a fiber came further than to what it spins on
u64 seed;
void *scheduler_stack;
char message[512];
void (*body)();

int random_below(int n) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return int(seed % u64(n));
}

void to_scheduler() { switch_stack(&fibers[current].stack, scheduler_stack); }

// Fibers hold nothing that would have to be undone.
void fail(const char *format, ...) {
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

void spin() {
    fibers[current].state = SPINNING;
    to_scheduler();
}

Lane &mine() { return warps[current / 32].lanes[current % 32]; }

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
} // namespace emulator
