// Floats of 16 bits without help of the CPU, rounded to nearest, ties to even.
#pragma once
#include <string.h>

namespace emulator {

inline float float_of(unsigned bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

inline unsigned bits_of(float value) {
    unsigned bits;
    memcpy(&bits, &value, 4);
    return bits;
}

inline float half_to_float(unsigned short half) {
    const unsigned sign = unsigned(half & 0x8000) << 16, magnitude = half & 0x7fff;
    if (magnitude >= 0x7c00) return float_of(sign | 0x7f800000u | (magnitude & 0x3ff) << 13);
    // As a float with the exponent of a half; the product is exact, below the smallest normal half as well.
    return float_of(sign | bits_of(float_of(magnitude << 13) * 0x1p112f));
}

inline unsigned short float_to_half(float value) {
    const unsigned bits = bits_of(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000u) return 0x7fff;
    if (magnitude >= 0x477ff000u) return sign | 0x7c00; // 65520 and above
    if (magnitude < 0x38800000u) {
        // Adding 2^-1 leaves units of 2^-24 in the last bits, rounded by the CPU.
        return sign | (bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u);
    }
    return sign | ((magnitude + 0xfff + (magnitude >> 13 & 1)) - 0x38000000u) >> 13;
}
} // namespace emulator
