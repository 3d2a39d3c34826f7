// Functions of one or two columns, as `model/reference_ops.py` has them.
#pragma once
#include <words.cuh>

struct Silu {
    static WORD float of(float x) { return x / (1.f + expf(-x)); }
};

struct GeluTanh {
    static WORD float of(float x) {
        const float inner = 0.7978845608028654f * x * (1.f + 0.044715f * x * x);
        return 0.5f * x * (1.f + tanhf(inner));
    }
};

struct Gelu {
    static WORD float of(float x) { return 0.5f * x * (1.f + erff(x / 1.4142135623730951f)); }
};

struct Relu {
    static WORD float of(float x) { return x > 0.f || x != x ? x : 0.f; }
};

template <class Function> struct Activated {
    static WORD float of(float x, float, float) { return Function::of(x); }
};

template <class Function> struct Gated {
    static WORD float of(float gate, float up, float) { return Function::of(gate) * up; }
};

struct SwigluOai {
    static WORD float of(float gate, float up, float) {
        gate = gate > 7.f ? 7.f : gate; // NaN stays, unlike with fminf
        up = up > 7.f ? 7.f : up < -7.f ? -7.f : up;
        return gate / (1.f + expf(-1.702f * gate)) * (up + 1.f);
    }
};

struct Added {
    static WORD float of(float a, float b, float) { return a + b; }
};

struct Multiplied {
    static WORD float of(float a, float b, float) { return a * b; }
};

struct Scaled {
    static WORD float of(float x, float, float factor) { return x * factor; }
};

struct Softcapped {
    static WORD float of(float x, float, float cap) { return cap * tanhf(x / cap); }
};
