// Kernels by name: their parameters are read off the function, and arguments come as words of 8 bytes.
#pragma once
#include "blocks.hpp"
#include "collectives.hpp"

namespace {
namespace emulator {

template <class T> struct Argument;
template <class T> struct Argument<T *> {
    static const char KIND = 'i';
    static T *of(u64 word) { return (T *)word; }
};
template <> struct Argument<long long> {
    static const char KIND = 'i';
    static long long of(u64 word) { return (long long)word; }
};
template <> struct Argument<float> {
    static const char KIND = 'f';
    static float of(u64 word) { return float_of(u32(word)); }
};

const u64 *arguments;

template <int... I> struct Indices {};
template <int N, int... I> struct UpTo : UpTo<N - 1, N - 1, I...> {};
template <int... I> struct UpTo<0, I...> { typedef Indices<I...> type; };

template <auto F> struct Kernel;
template <class... P, void (*F)(P...)> struct Kernel<F> {
    static constexpr char KINDS[] = {Argument<P>::KIND..., 0};
    template <int... I> static void call(Indices<I...>) { F(Argument<P>::of(arguments[I])...); }
    static void start() { call(typename UpTo<sizeof...(P)>::type()); }
};

struct Entry {
    const char *name, *kinds;
    void (*start)();
};

sigjmp_buf landing;
void land(int which, siginfo_t *info, void *) {
    if (info->si_code <= 0x7f && let_through(info->si_addr)) return;
    // What the CPU refuses for its alignment comes without an address, from the kernel.
    if (which == SIGILL || which == SIGTRAP || info->si_code > 0x7f)
        snprintf(message, sizeof message, "thread %d: a misaligned access, or an index or shift out of range", current);
    else if (early && watched_at(info->si_addr))
        snprintf(message, sizeof message,
                 "thread %d touched memory at %p before wait_for_previous(): a kernel in front may still write or read it",
                 current, info->si_addr);
    else
        snprintf(message, sizeof message, "thread %d touched memory at %p, which is not there", current, info->si_addr);
    siglongjmp(landing, 1);
}

const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP};

// Runs a kernel; what was wrong goes to `error`, an empty text where nothing was.
void run(void (*start)(), const u32 *grid, int threads, size_t shared, const u64 *words, u32 kind, char *error, size_t room) {
    static unsigned char signal_stack[1 << 16];
    stack_t stack = {}, old_stack;
    struct sigaction action = {}, old[4];
    stack.ss_sp = signal_stack, stack.ss_size = sizeof signal_stack;
    action.sa_sigaction = land, action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaltstack(&stack, &old_stack);
    for (int i = 0; i < 4; i++) sigaction(SIGNALS[i], &action, &old[i]);
    message[0] = 0, body = start, arguments = words;
    begin_watching();
    if (!sigsetjmp(landing, 1)) run_grid(grid, threads, shared, kind);
    end_watching();
    for (int i = 0; i < 4; i++) sigaction(SIGNALS[i], &old[i], nullptr);
    sigaltstack(&old_stack, nullptr);
    if (message[0])
        snprintf(error, room, "block (%u, %u, %u): %s", blockIdx.x, blockIdx.y, blockIdx.z, message);
    else
        error[0] = 0;
}
} // namespace emulator
} // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))
