// Powers of two that bring numbers to where halves, and what is left of them as a second half, have all their bits.
#pragma once
#include <words.cuh>

struct Power {
    float inverse, factor; // x * inverse is what becomes halves; times factor it is x again
};

// The largest of the numbers, `peak`, becomes 2^13 to 2^14. Numbers that are no numbers stay so.
WORD Power power_for(float peak) {
    u32 exponent = __float_as_uint(peak) >> 23 & 0xff;
    exponent = exponent < 14 ? 14 : exponent > 253 ? 253 : exponent;
    return {__uint_as_float((267 - exponent) << 23), __uint_as_float((exponent - 13) << 23)};
}

// Two numbers as halves, and what that leaves of them as halves: 22 bits of each.
WORD void split_halves(u32 &upper, u32 &lower, float a, float b) {
    upper = floats_to_halves(a, b);
    lower = floats_to_halves(a - low_half(upper), b - high_half(upper));
}
