// Families of plain floats: rows as in the file, one behind the other.
#pragma once
#include <words.cuh>

struct F16 {
    static WORD float at(const u8 *matrix, i64 i) { return half_to_float(((const u16 *)matrix)[i]); }
};

struct BF16 {
    static WORD float at(const u8 *matrix, i64 i) { return bf16_to_float(((const u16 *)matrix)[i]); }
};

struct F32 {
    static WORD float at(const u8 *matrix, i64 i) { return ((const float *)matrix)[i]; }
};

template <class F> struct IsPlain {
    static const bool YES = false;
};
template <> struct IsPlain<F16> {
    static const bool YES = true;
};
template <> struct IsPlain<BF16> {
    static const bool YES = true;
};
template <> struct IsPlain<F32> {
    static const bool YES = true;
};
