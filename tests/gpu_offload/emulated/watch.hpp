// Who touches which buffer, by protecting its pages. A kernel may begin before those in front of it have ended, so that
// until it has waited it must neither write nor read what they write: buffers that were written since the host waited
// cannot be touched then, others only read. Later the first write to a buffer is noted and let through.
#pragma once
#include <cstddef>
#include <sys/mman.h>

namespace emulator {

struct Watched {
    unsigned long long begin, bytes;
    unsigned written, readable; // even before the wait
};

Watched *watched;
int watched_count;
bool early; // no thread of the first block has come to its wait yet

void protect(const Watched &buffer, int how) { mprotect((void *)buffer.begin, size_t(buffer.bytes), how); }

void begin_watching() {
    early = watched_count > 0;
    for (int i = 0; i < watched_count; i++) protect(watched[i], watched[i].written && !watched[i].readable ? PROT_NONE : PROT_READ);
}

void end_early() {
    if (!early) return;
    early = false;
    for (int i = 0; i < watched_count; i++)
        if (watched[i].written) protect(watched[i], PROT_READ | PROT_WRITE);
}

void end_watching() {
    early = false;
    for (int i = 0; i < watched_count; i++) protect(watched[i], PROT_READ | PROT_WRITE);
}

Watched *watched_at(const void *address) {
    const unsigned long long at = (unsigned long long)address;
    for (int i = 0; i < watched_count; i++)
        if (at - watched[i].begin < watched[i].bytes) return watched + i;
    return nullptr;
}

// Whether an access that the pages refused was the first write to a buffer, and may be tried again.
bool let_through(const void *address) {
    Watched *buffer = watched_at(address);
    if (!buffer || early || buffer->written) return false;
    buffer->written = 1;
    protect(*buffer, PROT_READ | PROT_WRITE);
    return true;
}
} // namespace emulator
