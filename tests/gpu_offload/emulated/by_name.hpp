// Kernels by name: their parameters are read off the function, and arguments come as words of 8 bytes.
#pragma once
#include "collectives.hpp"

namespace emulator {

template <class T> struct Argument;
template <class T> struct Argument<T *> {
    static const char KIND = 'i';
    static T *of(u64 word) { return (T *)word; }
};
template <> struct Argument<long long> {
    static const char KIND = 'i';
    static long long of(u64 word) { return (long long)word; }
};
template <> struct Argument<float> {
    static const char KIND = 'f';
    static float of(u64 word) { return float_of(u32(word)); }
};

template <int... I> struct Indices {};
template <int N, int... I> struct UpTo : UpTo<N - 1, N - 1, I...> {};
template <int... I> struct UpTo<0, I...> { typedef Indices<I...> type; };

template <auto F> struct Kernel;
template <class... P, void (*F)(P...)> struct Kernel<F> {
    static constexpr char KINDS[] = {Argument<P>::KIND..., 0};
    template <int... I> static void call(Indices<I...>) { F(Argument<P>::of(arguments[I])...); }
    static void start() { call(typename UpTo<sizeof...(P)>::type()); }
};

} // namespace emulator

#define EXPORTED extern "C" __attribute__((visibility("default")))
