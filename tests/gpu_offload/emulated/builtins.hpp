// What CUDA C++ has without being asked, of what kernels use.
#pragma once
#include <limits.h>
#include <math.h>
#include <string.h>

#include "emulator.hpp"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __constant__ static const
#define __align__(n) __attribute__((aligned(n)))
#define __CUDA_ARCH__ 900
#ifdef __APPLE__
#define __shared__ static
#else
// All in one section, so that it can be poisoned before each block.
#define __shared__ static __attribute__((section("hb_shared")))
#endif

namespace {
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
inline long long min(long long a, long long b) { return a < b ? a : b; }
inline long long max(long long a, long long b) { return a > b ? a : b; }
inline unsigned long long min(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
inline unsigned long long max(unsigned long long a, unsigned long long b) { return a > b ? a : b; }
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }

inline float __uint_as_float(unsigned bits) { return emulator::float_of(bits); }
inline unsigned __float_as_uint(float value) { return emulator::bits_of(value); }
inline float __int_as_float(int bits) { return emulator::float_of(unsigned(bits)); }
inline int __float_as_int(float value) { return int(emulator::bits_of(value)); }

// What lies outside becomes the nearest whole number, and NaN zero: casts of C++ say nothing of either.
inline int __float2int_rn(float value) {
    if (value != value) return 0;
    return value >= 2147483648.f ? INT_MAX : value <= -2147483648.f ? INT_MIN : int(nearbyintf(value));
}
inline int __float2int_rz(float value) {
    if (value != value) return 0;
    return value >= 2147483648.f ? INT_MAX : value <= -2147483648.f ? INT_MIN : int(value);
}
inline int __float2int_rd(float value) { return __float2int_rz(floorf(value)); }
inline int __float2int_ru(float value) { return __float2int_rz(ceilf(value)); }
inline float __int2float_rn(int value) { return float(value); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __fsqrt_rn(float value) { return sqrtf(value); }
inline float __frcp_rn(float value) { return 1.f / value; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float value) { return expf(value); }
inline float __logf(float value) { return logf(value); }
inline float rsqrtf(float value) { return 1.f / sqrtf(value); }
inline void sincosf(float value, float *sine, float *cosine) { *sine = sinf(value), *cosine = cosf(value); }

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
inline int __clz(int bits) { return bits ? __builtin_clz(unsigned(bits)) : 32; }
inline int __ffs(int bits) { return __builtin_ffs(bits); }

// Of a selector the lower three bits count: the sign that the instruction knows is not the intrinsic's.
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selectors) {
    const unsigned long long bytes = (unsigned long long)b << 32 | a;
    unsigned result = 0;
    for (int i = 0; i < 4; i++) result |= (unsigned(bytes >> 8 * (selectors >> 4 * i & 7)) & 0xff) << 8 * i;
    return result;
}

inline int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 4; i++) c += int((signed char)(a >> 8 * i)) * int((signed char)(b >> 8 * i));
    return c;
}

template <class T> inline T __ldg(const T *pointer) { return *pointer; }
template <class T> inline T __ldcs(const T *pointer) { return *pointer; }
template <class T> inline T __ldcg(const T *pointer) { return *pointer; }

// Fibers take turns at barriers and collectives only.
template <class T> inline T atomicAdd(T *at, T value) { const T old = *at; *at = T(old + value); return old; }
template <class T> inline T atomicMax(T *at, T value) { const T old = *at; if (old < value) *at = value; return old; }
template <class T> inline T atomicMin(T *at, T value) { const T old = *at; if (value < old) *at = value; return old; }
template <class T> inline T atomicExch(T *at, T value) { const T old = *at; *at = value; return old; }
template <class T> inline T atomicOr(T *at, T value) { const T old = *at; *at = old | value; return old; }
template <class T> inline T atomicCAS(T *at, T expected, T value) {
    const T old = *at;
    if (old == expected) *at = value;
    return old;
}
inline void __threadfence() {}
inline void __threadfence_block() {}

inline void __syncthreads() { emulator::barrier(); }
} // namespace
