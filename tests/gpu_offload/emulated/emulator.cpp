// The emulator: blocks of fibers, and what becomes of a kernel that touches what it must not.
#include "blocks.hpp"
#include "work.hpp"

namespace emulator {

const u64 *arguments;

void watch(void *buffers, int count) { watched = (Watched *)buffers, watched_count = count; }

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
