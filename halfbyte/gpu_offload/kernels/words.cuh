// The vocabulary of all kernels: types, lanes, matrix instructions, copies. Everything that is PTX stands here, so that
// another file of this name can give the same words a meaning on a CPU.
//
// Kernels are compiled without contraction: a sum of products is fused where it says fmaf, and nowhere else, so that
// every instance of a template rounds alike.
#pragma once

typedef signed char i8;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;

#define WORD __device__ __forceinline__
#define DYNAMIC_SHARED(name) extern __shared__ __align__(128) u8 name[]

// --- who am I ---------------------------------------------------------------------------------------------------------

WORD int lane() { return threadIdx.x & 31; }
WORD int warp() { return threadIdx.x >> 5; }

// --- order of kernels -------------------------------------------------------------------------------------------------

// Nothing that an earlier kernel wrote may be read, and nothing it reads written, before this.
WORD void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// The next kernel may begin with what needs no results of this one. To be called as early as possible.
WORD void let_next_start() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// Byte i of a word with its sign.
WORD i32 signed_byte(u32 word, int i) {
    i32 value;
    asm("prmt.b32 %0, %1, 0, %2;" : "=r"(value) : "r"(word), "r"(0x8880 | 0x1111 * i));
    return value;
}

// --- halves -----------------------------------------------------------------------------------------------------------

WORD float half_to_float(u16 bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

WORD u16 float_to_half(float value) {
    u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

// Two halves in a word, the first below.
WORD u32 floats_to_halves(float first, float second) {
    u32 bits;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
    return bits;
}

// Of both halves of a word.
WORD u32 subtract_halves(u32 a, u32 b) {
    u32 difference;
    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(difference) : "r"(a), "r"(b));
    return difference;
}

WORD float low_half(u32 bits) { return half_to_float(u16(bits)); }
WORD float high_half(u32 bits) { return half_to_float(u16(bits >> 16)); }
WORD float bf16_to_float(u16 bits) { return __uint_as_float(u32(bits) << 16); }

// 2^x within two units of the last place; 0 where the result would lose bits.
WORD float two_to(float x) {
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power;
}

// --- lanes of a warp --------------------------------------------------------------------------------------------------

template <class T> WORD T shuffle_xor(T value, int mask) { return __shfl_xor_sync(0xffffffffu, value, mask); }
template <class T> WORD T shuffle(T value, int source) { return __shfl_sync(0xffffffffu, value, source); }

// `warps` warps of a block meet; groups that meet at the same time have numbers of their own, 1 to 15.
WORD void meet(int number, int warps) { asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(32 * warps) : "memory"); }

// What another block may have changed meanwhile.
WORD u32 load_again(const u32 *pointer) { return *(const volatile u32 *)pointer; }

// --- matrix instructions ----------------------------------------------------------------------------------------------
// With g = lane / 4 and t = lane % 4. Sums c: rows g, g, g + 8, g + 8, columns 2t, 2t + 1, 2t, 2t + 1.

// c[16, 8] += a[16, 32] b[32, 8] in bytes. a: 4 neighbours from k = 4t of row g, of row g + 8, from k = 16 + 4t of row g,
// of row g + 8; b0, b1: 4 neighbours from k = 4t and from k = 16 + 4t of column g.
WORD void multiply_bytes_32(i32 (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// c[16, 8] += a[16, 16] b[16, 8] in bytes. a0: 4 neighbours from k = 4t of row g, a1 of row g + 8; b0 of column g.
WORD void multiply_bytes_16(i32 (&c)[4], u32 a0, u32 a1, u32 b0) {
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a0), "r"(a1), "r"(b0));
}

// c[16, 8] += a[16, 16] b[16, 8] in halves, summed in floats. a: 2 neighbours from k = 2t of row g, of row g + 8, from
// k = 8 + 2t of row g, of row g + 8; b0, b1: 2 neighbours from k = 2t and from k = 8 + 2t of column g.
WORD void multiply_halves(float (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

WORD u32 shared_address(const void *pointer) { return u32(__cvta_generic_to_shared(pointer)); }

// Four 8 x 8 matrices of halves; lane 8i + j gives the address of row j of matrix i. Lane l gets of each matrix the two
// neighbours 2 (l % 4) of row l / 4, or transposed, of column l / 4.
WORD void load_matrices(u32 (&r)[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(row)) : "memory");
}

WORD void load_matrices_transposed(u32 (&r)[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(row)) : "memory");
}

// --- copies to shared memory that nobody waits for ---------------------------------------------------------------------
// 16 bytes, both addresses aligned to them. Commits group what was begun; waiting leaves the last N groups under way and
// says nothing of other threads: a barrier does.

WORD void begin_copy_16(void *shared, const void *global) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(shared)), "l"(global) : "memory");
}

WORD void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int N> WORD void wait_for_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

// --- loads that are not looked up again --------------------------------------------------------------------------------

WORD uint4 load_streamed(const uint4 *pointer) {
    uint4 v;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(pointer));
    return v;
}

// Past what this multiprocessor remembers: for what other blocks of the same kernel wrote.
WORD uint4 load_fresh(const uint4 *pointer) {
    uint4 v;
    asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(pointer) : "memory");
    return v;
}

WORD uint2 load_fresh_8(const uint2 *pointer) {
    uint2 v;
    asm volatile("ld.global.cg.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(pointer) : "memory");
    return v;
}
