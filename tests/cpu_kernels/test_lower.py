"""What programs become: which kernels, with which barriers between, and where their values lie."""

import re

import pytest

from halfbyte.cpu_kernels.instruction import BARRIER
from halfbyte.cpu_kernels.lower import Lowering
from halfbyte.cpu_kernels.packing import PackedWeight
from halfbyte.cpu_kernels.place import Plan
from halfbyte.formats import open_gguf
from halfbyte.model import bind
from halfbyte.model.check import check
from halfbyte.model.program import (
    Act,
    Add,
    Embed,
    GatedAct,
    LayerNorm,
    Linear,
    Mul,
    Program,
    RmsNorm,
    Softcap,
    TakeRows,
)
from tests.cpu_kernels.lowered import barriers, overlapping_lives, races, touches
from tests.cpu_kernels.programs import ARCHS, MIXED, build
from tests.model.tiny import make_tiny_gguf

LAYERS = 3


@pytest.fixture
def lowered(tmp_path):
    made = []

    def make(arch="llama", n_layers=LAYERS, **choices):
        path = make_tiny_gguf(tmp_path / f"{len(made)}.gguf", arch, n_layers=n_layers, **choices)
        made.append(build(bind(open_gguf(path)), threads=2))
        return made[-1]

    yield make
    for runner in made:
        runner.close()


def calls_of(runner):
    return runner._placed.plan.lowering.calls


def layer_of(runner, layer):
    """Kernels from one write to the pages to the next, the format left out."""
    kernels = [re.sub("_q4_1$|_f32$|_f16_f16$", "", call.kernel) for call in calls_of(runner)]
    writes = [index for index, kernel in enumerate(kernels) if kernel == "kv_write"]
    return kernels[writes[layer] : writes[layer + 1]]


QUANTIZED = {
    "llama": "kv_write attention quantize linear norm linear linear gated_silu linear norm linear linear linear "
    "rope_norm rope_norm",
    "qwen2": "kv_write attention quantize linear norm linear linear gated_silu linear norm linear linear linear "
    "rope_neox rope_neox",
    "gemma3": "kv_write attention quantize linear norm norm linear linear gated_gelu_tanh linear norm norm "
    "linear linear linear norm norm rope_neox rope_neox",
}
"""A layer of quantized matrices: norms and gates quantize along, products and norms add along."""


@pytest.mark.parametrize("arch", ARCHS)
def test_a_layer_is_as_few_calls_as_its_kernels_allow(lowered, arch):
    layer = layer_of(lowered(arch, weights="q4_1"), 0)
    assert sorted(layer) == sorted(QUANTIZED[arch].split())


@pytest.mark.parametrize("arch", ARCHS)
def test_float_matrices_quantize_nothing(lowered, arch):
    runner = lowered(arch, weights="f32")
    assert sorted(layer_of(runner, 0)) == sorted(kernel for kernel in QUANTIZED[arch].split() if kernel != "quantize")
    assert not any("#q" in name for call in calls_of(runner) for name in call.writes)


def test_products_of_one_input_share_it_and_run_into_each_other(lowered):
    runner = lowered(weights="q4_1")
    calls, stops = calls_of(runner), barriers(runner)
    shared = {}
    for index, call in enumerate(calls):
        if call.layout == "linear":
            shared.setdefault(call.operands["x"], []).append(index)
    triples = [found for found in shared.values() if len(found) > 1]
    assert sorted(map(len, triples)) == [2] * LAYERS + [3] * LAYERS  # gate and up; queries, keys and values
    for found in triples:
        assert found == list(range(found[0], found[-1] + 1))
        assert not any(stops[found[0] : found[-1]])


def test_angles_are_made_once_a_table(lowered):
    assert [call.kernel for call in calls_of(lowered("llama"))].count("angles") == 1
    runner = lowered("gemma3", metadata={"gemma3.rope.freq_base": 1e6})
    assert [call.kernel for call in calls_of(runner)].count("angles") == 2


def test_rows_that_nobody_asked_for_are_dropped_before_the_last_layers_matrices(lowered):
    kernels = [call.kernel for call in calls_of(lowered(weights="f32"))]
    rows = kernels.index("take_rows")
    assert kernels[rows:].count("linear_f32") == 5  # attention's output, gate, up, down, the head
    assert "kv_write_f16_f16" not in kernels[rows:]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("choices", [{"weights": "f32"}, {"weights": "q4_1"}, MIXED], ids=["f32", "q4_1", "mixed"])
def test_calls_that_share_memory_have_a_barrier_between_and_no_value_is_overwritten_alive(lowered, arch, choices):
    runner = lowered(arch, **choices)
    assert len(touches(runner)) > 3 * LAYERS * 10
    assert races(runner) == []
    assert overlapping_lives(runner) == []


def test_the_check_above_sees_every_barrier_that_is_missing(lowered):
    runner = lowered(weights="q4_1")
    for words, needed in zip(runner._placed.words[: runner._placed.length], barriers(runner), strict=True):
        if needed:
            words[BARRIER // 8] = 0
            assert races(runner) != []
            words[BARRIER // 8] = 1


def test_the_check_above_sees_values_in_one_place(lowered, monkeypatch):
    def give(plan, name, free):
        plan.sizes[:] = [max([*plan.sizes, plan.bytes_of(name)])]
        plan.piece_of[name] = 0

    monkeypatch.setattr(Plan, "_give", give)
    assert overlapping_lives(lowered(weights="q4_1")) != []


def test_deeper_models_need_no_more_memory_between_ops(lowered):
    plan = lowered(weights="q4_1")._placed.plan
    assert lowered(weights="q4_1", n_layers=9)._placed.plan.sizes == plan.sizes
    assert sum(plan.sizes) < sum(plan.bytes_of(name) for name in plan.piece_of) / 3


D = 64
QUANTIZING = {
    "layer_norm": LayerNorm("s", "w", "y", 1e-6, "b"),
    "act_gelu": Act("s", "y", "gelu"),
    "gated_swiglu_oai": GatedAct("s", "x", "y", "swiglu_oai"),
    "mul": Mul("s", "x", "y"),
}


@pytest.mark.parametrize("kernel", list(QUANTIZING))
def test_what_only_quantized_matrices_read_is_quantized_where_it_is_made(kernel):
    ops = (Embed("table", "x"), Softcap("x", "s", 3.0), QUANTIZING[kernel], TakeRows("x", "r"), Linear("y", "m", "z"))
    ops += (TakeRows("z", "asked"), Add("asked", "r", "last"))
    program = Program(ops, dict.fromkeys(["x", "s", "y", "r", "z", "asked", "last"], D), (), "last", D)
    check(program)
    lowering = Lowering(program, {"m": PackedWeight("q8_0", D, D, 0)}, {"table": "f32"}, 8)
    made = {call.kernel: call for call in lowering.calls}
    assert "quantize" not in made
    assert made[kernel].writes == ("y#q",)
    assert made[kernel].operands["out"] == 0


@pytest.mark.parametrize("norm", [RmsNorm("s", "w", "y", 1e-6), LayerNorm("s", "w", "y", 1e-6)], ids=["rms", "layer"])
def test_a_sum_is_computed_by_the_norm_behind_it(norm):
    ops = (Embed("table", "x"), Softcap("x", "c", 3.0), Add("x", "c", "s"), norm, Add("s", "y", "z"))
    ops += (TakeRows("z", "asked"), Linear("asked", "m", "last"))
    program = Program(ops, dict.fromkeys(["x", "c", "s", "y", "z", "asked", "last"], D), (), "last", D)
    check(program)
    lowering = Lowering(program, {"m": PackedWeight("f32", D, D, 0)}, {"table": "f32"}, 8)
    kernels = [call.kernel for call in lowering.calls]
    assert kernels.count("add") == 1
    assert {"s", "y"} <= {name for call in lowering.calls if "norm" in call.kernel for name in call.writes}
