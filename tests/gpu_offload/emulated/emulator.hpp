// What kernels need of the emulator, which is compiled once for all of them.
#pragma once
#include "halves.hpp"

struct Three {
    unsigned x, y, z;
};
extern Three threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {

typedef unsigned int u32;
typedef unsigned long long u64;

enum { MARGIN = 1024 }; // bytes around dynamic shared memory

// What a lane brings to a collective and takes from it.
struct Lane {
    u32 in[12], out[4];
};
typedef void (*Work)(Lane *lanes, int count);

extern int current; // the thread that runs
extern unsigned char *shared_memory;
extern const u64 *arguments;

// The block is given up, with a message.
__attribute__((format(printf, 1, 2))) void fail(const char *format, ...);

void wait_for_previous();
void barrier();
void meet_warps(int number, int warp_count);

// To be called in a loop that waits for another block: what can run does so first.
void spin();

// All lanes of a warp meet; the last one does the work of all. What a lane brings and takes is `mine`.
void meet(const char *place, Work work);
void meet_whole(const char *place, Work work); // of a warp of 32
Lane &mine();
u32 all_lanes();

// Copies arrive when they are waited for.
void begin_copy(void *to, const void *from);
void commit_copies();
void finish_copies(size_t under_way);

// Work of collectives.
void no_work(Lane *, int);
void give_values(Lane *, int);
void give_votes(Lane *, int);
template <int PARTS> void multiply_bytes(Lane *, int);
void multiply_halves(Lane *, int);
template <bool TRANSPOSED> void load_rows(Lane *, int);

struct Entry {
    const char *name, *kinds;
    void (*start)();
};

// Runs a kernel; what was wrong goes to `error`, an empty text where nothing was.
void run(void (*start)(), const u32 *grid, int threads, size_t shared, const u64 *words, u32 kind, char *error, size_t room);
void watch(void *buffers, int count);
} // namespace emulator
