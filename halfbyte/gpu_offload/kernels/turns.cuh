// Angles as fractions of a turn in whole numbers of 64 bits: their product with a position is exact, and whole turns fall
// off by themselves.
#pragma once
#include <words.cuh>

// Cosine and sine of `turn` / 2^64 turns, within 2^-23. The polynomials are those of least error up to an eighth of a turn.
WORD float2 cosine_and_sine(u64 turn) {
    const u32 top = u32(turn >> 32) + u32(turn >> 31 & 1);
    const u32 quarter = (top + 0x20000000u) >> 30;
    const float x = float(i32(top - (quarter << 30))) * 1.4629180792671596e-9f, y = x * x; // 2 pi / 2^32
    float sine = fmaf(fmaf(-1.9515295891e-4f, y, 8.3321608736e-3f), y, -1.6666654611e-1f);
    sine = fmaf(sine * y, x, x);
    float cosine = fmaf(fmaf(2.443315711809948e-5f, y, -1.388731625493765e-3f), y, 4.166664568298827e-2f);
    cosine = fmaf(cosine * y, y, fmaf(-0.5f, y, 1.f));
    const float2 turned = quarter & 1 ? make_float2(-sine, cosine) : make_float2(cosine, sine);
    return quarter & 2 ? make_float2(-turned.x, -turned.y) : turned;
}
