// The words of `halfbyte/gpu_offload/kernels/words.cuh` on a CPU. A test compares the two lists.
#pragma once

typedef signed char i8;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;

#define WORD __device__ __forceinline__
#define DYNAMIC_SHARED(name) u8 *const name = emulator::shared_memory + emulator::MARGIN

WORD int lane() { return threadIdx.x & 31; }
WORD int warp() { return threadIdx.x >> 5; }

WORD void wait_for_previous() { emulator::wait_for_previous(); }
WORD void let_next_start() {}

WORD i32 signed_byte(u32 word, int i) { return i32(i8(word >> 8 * i)); }

WORD float half_to_float(u16 bits) { return emulator::half_to_float(bits); }
WORD u16 float_to_half(float value) { return emulator::float_to_half(value); }
WORD u32 floats_to_halves(float first, float second) { return float_to_half(first) | u32(float_to_half(second)) << 16; }
WORD u32 subtract_halves(u32 a, u32 b) {
    const float low = half_to_float(u16(a)) - half_to_float(u16(b));
    return floats_to_halves(low, half_to_float(u16(a >> 16)) - half_to_float(u16(b >> 16)));
}
WORD float low_half(u32 bits) { return half_to_float(u16(bits)); }
WORD float high_half(u32 bits) { return half_to_float(u16(bits >> 16)); }
WORD float bf16_to_float(u16 bits) { return __uint_as_float(u32(bits) << 16); }

WORD float two_to(float x) { return x < -126.f ? 0.f : exp2f(x); }

template <class T> WORD T shuffle_xor(T value, int mask) { return __shfl_xor_sync(0xffffffffu, value, mask); }
template <class T> WORD T shuffle(T value, int source) { return __shfl_sync(0xffffffffu, value, source); }

WORD void meet(int number, int warps) { emulator::meet_warps(number, warps); }

WORD u32 load_again(const u32 *pointer) {
    emulator::spin();
    return *pointer;
}

WORD void multiply_bytes_32(i32 (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
    const u32 operands[6] = {a0, a1, a2, a3, b0, b1};
    emulator::bring(0, c);
    emulator::bring(4, operands);
    emulator::meet_whole("multiply_bytes_32", emulator::multiply_bytes<2>);
    memcpy(c, emulator::mine().out, sizeof c);
}

WORD void multiply_bytes_16(i32 (&c)[4], u32 a0, u32 a1, u32 b0) {
    const u32 operands[3] = {a0, a1, b0};
    emulator::bring(0, c);
    emulator::bring(4, operands);
    emulator::meet_whole("multiply_bytes_16", emulator::multiply_bytes<1>);
    memcpy(c, emulator::mine().out, sizeof c);
}

WORD void multiply_halves(float (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
    const u32 operands[6] = {a0, a1, a2, a3, b0, b1};
    emulator::bring(0, c);
    emulator::bring(4, operands);
    emulator::meet_whole("multiply_halves", emulator::multiply_halves);
    memcpy(c, emulator::mine().out, sizeof c);
}

WORD u32 shared_address(const void *pointer) {
    const u64 at = u64(pointer);
    if (at % 16) emulator::fail("shared_address: a row of a matrix is not aligned to 16 bytes");
    return u32(at - u64(emulator::shared_memory));
}

WORD void load_matrices(u32 (&r)[4], const void *row) {
    shared_address(row);
    emulator::bring(0, row);
    emulator::meet_whole("load_matrices", emulator::load_rows<false>);
    memcpy(r, emulator::mine().out, sizeof r);
}

WORD void load_matrices_transposed(u32 (&r)[4], const void *row) {
    shared_address(row);
    emulator::bring(0, row);
    emulator::meet_whole("load_matrices_transposed", emulator::load_rows<true>);
    memcpy(r, emulator::mine().out, sizeof r);
}

WORD void begin_copy_16(void *shared, const void *global) { emulator::begin_copy(shared, global); }
WORD void commit_copies() { emulator::commit_copies(); }
template <int N> WORD void wait_for_copies() { emulator::finish_copies(N); }

WORD uint4 load_streamed(const uint4 *pointer) { return *pointer; }
WORD uint4 load_fresh(const uint4 *pointer) { return *pointer; }
WORD uint2 load_fresh_8(const uint2 *pointer) { return *pointer; }
