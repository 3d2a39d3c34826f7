"""Short convolutions over what pages keep: to the bit what the reference computes, in any pieces."""

import numpy as np
import pytest

from halfbyte.model.kv_types import KvTypes
from halfbyte.model.program import KvLayer, KvWrite, Linear, ShortConv, TakeRows
from tests.cpu_kernels.lowered import overlapping_lives, races
from tests.cpu_kernels.op_programs import SIZE, build, on_table, reference
from tests.cpu_kernels.products import f32_weight
from tests.cpu_kernels.programs import PAGE_LEN, poison
from tests.model.batches import run_all, step, whole_prompt_batches

IDS = np.arange(100) * 3
PAGES = [3, 7, 1, 0, 6, 2, 4]
TYPES = {"f16": KvTypes(), "q8_0/q4_0": KvTypes("q8_0", "q4_0"), "f32": KvTypes("f32", "f32")}


def conv_program(rng, taps=3, heads=1, width=SIZE):
    """Filters the rows of the table, or their first channels."""
    layer = KvLayer(heads, 0, width // heads, taps, exact=True)
    ops = [Linear("x", "first", "v"), KvWrite(None, "v", 0), ShortConv("filter", "o", 0, taps)]
    ops += [TakeRows("o", "asked"), Linear("asked", "back", "y")]
    widths = dict.fromkeys(["v", "o", "asked"], width)
    program, weights = on_table(rng.standard_normal((SIZE, SIZE)), *ops, kv_layers=(layer,), widths=widths)
    weights |= {"first": f32_weight(np.eye(width, SIZE)), "back": f32_weight(np.eye(SIZE, width))}
    return program, weights | {"filter": f32_weight(rng.standard_normal((width, taps)))}


KINDS = {
    "three taps": {},
    "two taps": {"taps": 2},
    "more taps than a page has slots": {"taps": 19},
    "heads of no vector": {"heads": 9},
    "whole vectors": {"width": 320, "heads": 2},
}


@pytest.mark.parametrize("types", list(TYPES))
@pytest.mark.parametrize("kind", list(KINDS))
def test_equal_to_the_reference_in_any_chunks(rng, kind, types):
    program, kv = conv_program(rng, **KINDS[kind]), TYPES[types]
    whole = run_all(reference(*program, kv=kv), whole_prompt_batches(IDS, PAGE_LEN, [100]), SIZE)
    for threads in (1, 3):
        runner = build(*program, threads=threads, kv=kv)
        assert races(runner) == []
        assert overlapping_lives(runner) == []
        for chunks in ([100], [1], [7, 9, 30, 3]):
            poison(runner)
            assert np.array_equal(run_all(runner, whole_prompt_batches(IDS, PAGE_LEN, chunks, PAGES), SIZE), whole)
        runner.close()


def test_sequences_in_one_step_do_not_see_each_other(rng):
    runner = build(*conv_program(rng), threads=2)
    parts = [(IDS[:13], 0, [0]), (IDS[50:71], 0, [5, 2]), (IDS[20:21], 0, [4]), (IDS[30:38], 0, [7])]
    alone = [run_all(runner, [step([part], PAGE_LEN)], SIZE) for part in parts]
    poison(runner)
    assert np.array_equal(run_all(runner, [step(parts, PAGE_LEN)], SIZE), np.concatenate(alone))
    runner.close()


@pytest.mark.parametrize("types", list(TYPES))
def test_pages_are_copied_and_travel_with_what_a_filter_looks_back_at(rng, types):
    program, kv = conv_program(rng), TYPES[types]
    one, other = (build(*program, kv=kv) for _ in range(2))
    whole = run_all(one, whole_prompt_batches(IDS, PAGE_LEN, [100]), SIZE)
    poison(other)
    for page in (1, 2):
        data = np.full(one.page_bytes, 255, np.uint8)
        one.read_page(page, data)
        other.write_page(page + 3, data)
        one.copy_page(page, page + 3)
    batch = step([(IDS[48:60], 48, [-1, -1, 5, 7])], PAGE_LEN)
    for runner in (one, other):
        assert np.array_equal(run_all(runner, [batch], SIZE), whole[48:60])
        runner.close()


def test_a_quantized_store_keeps_halves_for_filters(rng):
    runner = build(*conv_program(rng), kv=KvTypes("q4_0", "q8_0"))
    assert {"kv_write_f16_f16", "conv_f16"} <= {call.kernel for call in runner._placed.plan.lowering.calls}
    assert runner.page_bytes == 16 * 2 * 336  # values in whole vectors
    runner.close()
