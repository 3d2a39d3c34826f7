// What a step is about: the arrays of a StepBatch on the device.
#pragma once
#include <words.cuh>

struct Step {
    i32 tokens, sequences, rows, max_pages;
    i32 adapters, unused0, unused1, unused2;
    const i32 *ids, *positions, *seq_of, *slots; // [tokens]; slots are page * 16 + offset
    const i32 *page_table;                       // [sequences, max_pages]
    const i32 *seq_len;                          // [sequences]
    const i32 *logit_rows;                       // [rows]
    const float *adapter_scales;                 // [sequences, adapters]
};

// How many rows a value has: `asked` says that they stand for asked-for tokens.
WORD int count_of(const Step *step, i64 asked) { return asked ? step->rows : step->tokens; }
