"""Layers of all kinds one after the other: filters between attention of differing heads, some turned, some not."""

import numpy as np
import pytest

from halfbyte.model.kv_types import KvTypes
from halfbyte.model.program import (
    Add,
    Attention,
    KvLayer,
    KvWrite,
    Linear,
    Mul,
    Rope,
    RopeTable,
    ShortConv,
    TakeRows,
)
from tests.cpu_kernels.lowered import overlapping_lives, races
from tests.cpu_kernels.op_programs import SIZE, build, on_table, reference
from tests.cpu_kernels.products import f32_weight
from tests.cpu_kernels.programs import PAGE_LEN, distance, poison
from tests.model.batches import run_all, step, whole_prompt_batches

IDS = np.arange(90) * 3 + 1
PAGES = [3, 7, 1, 0, 6, 2]
TYPES = {"f16": (KvTypes(), 2e-4), "f32": (KvTypes("f32", "f32"), 2.5e-6), "q8_0/q4_0": (KvTypes("q8_0", "q4_0"), 1e-3)}
"""Types of the store, and how far from the reference (relative L2): where numbers are rounded to it, some tip.

Measured: 1.6e-5, 2.5e-7, 2.4e-5.
"""
HEADS = ((4, 2, 32, None), (6, 3, 20, 18), (5, 1, 64, None))
"""Heads, kv heads, their size and the window of each attention."""
SLOW = RopeTable("neox", tuple(100.0 ** -(np.arange(6) / 6)))


def attention_layer(rng, x, i, layer):
    """Ops, widths and weights; the second attention turns some of its channels, the others none."""
    heads, kv_heads, size, window = HEADS[i]
    names = {"q": heads, "k": kv_heads, "v": kv_heads, "o": heads}
    widths = {f"{name}{i}": n * size for name, n in names.items()} | {f"t{i}": kv_heads * size, f"u{i}": heads * size}
    ops = [Linear(x, f"w{name}{i}", f"{name}{i}") for name in "qkv"]
    ops += [Rope(f"k{i}", f"t{i}", kv_heads, SLOW), Rope(f"q{i}", f"u{i}", heads, SLOW)] if i == 1 else []
    q, k = (f"u{i}", f"t{i}") if i == 1 else (f"q{i}", f"k{i}")
    shape = (heads, kv_heads, size, size, size**-0.5, window)
    ops += [KvWrite(k, f"v{i}", layer), Attention(q, f"o{i}", layer, *shape), Linear(f"o{i}", f"wo{i}", f"y{i}")]
    ops += [Add(x, f"y{i}", f"x{i}")]
    weights = {f"w{name}{i}": rng.standard_normal((names[name] * size, SIZE)) / SIZE**0.5 for name in "qkv"}
    weights[f"wo{i}"] = rng.standard_normal((SIZE, heads * size)) / SIZE**0.5
    written = {name for op in ops for name in op.writes()}
    widths = {name: width for name, width in widths.items() if name in written}
    return ops, widths, weights, KvLayer(kv_heads, size, size, window)


def filter_layer(rng, x, i, layer):
    ops = [Linear(x, f"wb{i}", f"b{i}"), Mul(x, f"b{i}", f"m{i}"), KvWrite(None, f"m{i}", layer)]
    ops += [ShortConv(f"filter{i}", f"c{i}", layer, 3), Add(x, f"c{i}", f"z{i}")]
    weights = {f"wb{i}": rng.standard_normal((SIZE, SIZE)) / SIZE, f"filter{i}": rng.standard_normal((SIZE, 3))}
    return ops, {}, weights, KvLayer(1, 0, SIZE, 3, exact=True)


@pytest.fixture
def program(rng):
    ops, widths, weights, layers, x = [], {}, {}, [], "x"
    for i in range(len(HEADS)):
        for make, out in ((attention_layer, f"x{i}"), (filter_layer, f"z{i}")):
            more, wide, given, layer = make(rng, x, i, len(layers))
            ops, widths, weights, layers, x = [*ops, *more], widths | wide, weights | given, [*layers, layer], out
    ops += [TakeRows(x, "asked"), Linear("asked", "one", "y")]
    table = rng.standard_normal((SIZE, SIZE))
    program, given = on_table(table, *ops, kv_layers=tuple(layers), widths=widths)
    return program, given | {name: f32_weight(values) for name, values in weights.items()}


@pytest.mark.parametrize("name", list(TYPES))
def test_near_the_reference_and_equal_to_the_bit_in_any_chunks(program, name):
    types, budget = TYPES[name]
    expected = run_all(reference(*program, kv=types), whole_prompt_batches(IDS, PAGE_LEN, [90]), SIZE)
    whole = None
    for threads in (1, 3):
        runner = build(*program, threads=threads, kv=types)
        assert races(runner) == []
        assert overlapping_lives(runner) == []
        for chunks in ([90], [1], [7, 9, 30, 3]):
            poison(runner)
            answer = run_all(runner, whole_prompt_batches(IDS, PAGE_LEN, chunks, PAGES), SIZE)
            whole = answer if whole is None else whole
            assert np.array_equal(answer, whole)
        runner.close()
    assert distance(whole, expected) < budget


def test_sequences_in_one_step_do_not_see_each_other(program):
    runner = build(*program, threads=2)
    parts = [(IDS[:33], 0, [0, 3, 6]), (IDS[50:71], 0, [5, 2]), (IDS[20:21], 0, [4]), (IDS[30:38], 0, [7])]
    alone = [run_all(runner, [step([part], PAGE_LEN)], SIZE) for part in parts]
    poison(runner)
    assert np.array_equal(run_all(runner, [step(parts, PAGE_LEN)], SIZE), np.concatenate(alone))
    runner.close()
