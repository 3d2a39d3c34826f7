// Sizes of a family, for a test that they are the same in Python.
#pragma once
#include <packed.cuh>

template <class F> __global__ void sizes(i64 *out) {
    let_next_start();
    wait_for_previous();
    if (threadIdx.x == 0) out[0] = F::COLUMNS, out[1] = F::STEP_BYTES;
}
