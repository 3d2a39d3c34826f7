// Collectives of a warp as CUDA calls them.
#pragma once
#include "builtins.hpp"

namespace emulator {

inline u32 vote(u32 mask, bool yes) {
    if (mask != 0xffffffffu) fail("a vote of a part of a warp");
    mine().in[0] = yes;
    meet("a vote", give_votes);
    return mine().out[0];
}

template <class T> T shuffle(u32 mask, T value, int source, int width) {
    static_assert(sizeof(T) <= 8, "shuffles move up to 8 bytes");
    if (mask != 0xffffffffu || width != 32) fail("a shuffle of a part of a warp");
    Lane &lane = mine();
    memcpy(lane.in, &value, sizeof(T));
    lane.in[2] = u32(source);
    meet("a shuffle", give_values);
    memcpy(&value, lane.out, sizeof(T));
    return value;
}

template <class T> void bring(int at, const T &value) { memcpy(mine().in + at, &value, sizeof(T)); }
} // namespace emulator

namespace {
inline void __syncwarp(unsigned = 0xffffffffu) { emulator::meet("__syncwarp", emulator::no_work); }
template <class T> inline T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
    return emulator::shuffle(mask, value, source & 31, width);
}
template <class T> inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
    return emulator::shuffle(mask, value, (emulator::current & 31) ^ bits, width);
}
template <class T> inline T __shfl_down_sync(unsigned mask, T value, int by, int width = 32) {
    return emulator::shuffle(mask, value, (emulator::current & 31) + by, width);
}
template <class T> inline T __shfl_up_sync(unsigned mask, T value, int by, int width = 32) {
    const int from = (emulator::current & 31) - by;
    return emulator::shuffle(mask, value, from < 0 ? emulator::current & 31 : from, width);
}
inline unsigned __ballot_sync(unsigned mask, int yes) { return emulator::vote(mask, yes != 0); }
inline int __any_sync(unsigned mask, int yes) { return emulator::vote(mask, yes != 0) != 0; }
inline int __all_sync(unsigned mask, int yes) { return emulator::vote(mask, yes != 0) == emulator::all_lanes(); }
} // namespace
