"""A program cut in two answers as the whole does, to the bit, wherever it is cut."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from halfbyte.formats import open_gguf
from halfbyte.model import bind
from halfbyte.model.adapt import adapt
from halfbyte.model.adapter import read_adapter
from halfbyte.model.archs import ARCHS
from halfbyte.model.check import check
from halfbyte.model.pieces import cut, settled
from halfbyte.model.program import Add, Attention, Embed, KvWrite, Linear, Receive, Tap
from halfbyte.model.reference import ReferenceExecutable
from halfbyte.model.taps import all_rows, with_taps
from tests.model.adapters import make_adapter
from tests.model.batches import run_all, run_side_by_side, step, whole_prompt_batches
from tests.model.shares import on_references, random_places
from tests.model.tiny import make_tiny_gguf

IDS = np.random.default_rng(3).integers(0, 300, 40)
FORMS = {"runs": 4, "every op": 30}


def width(model):
    return model.program.widths[model.program.logits]


def prompts(model):
    """Steps as an engine makes them: chunks, in the last one two asked-for rows; an encoder has its text at once."""
    if model.program.encoder:
        return [step([(IDS, 0, [0, 1, 2])], 16)]
    return [*whole_prompt_batches(IDS[:30], 16, [9, 1, 20], rows="last"), step([(IDS[30:], 30, [0, 1, 2])], 16, [2, 9])]


@pytest.mark.parametrize("runs", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("arch", ARCHS)
def test_two_shares_give_the_bits_of_the_whole(arch, runs, tiny_models):
    model = tiny_models[arch]
    whole = run_all(ReferenceExecutable(model.program, model.weights, n_pages=12), prompts(model), width(model))
    assert np.isfinite(whole).all()
    for seed in range(6):
        pieces = cut(model.program, random_places(model.program, np.random.default_rng(seed), runs))
        assert np.array_equal(run_all(on_references(pieces, model.weights), prompts(model), width(model)), whole), seed


def test_lean_shares_and_sequences_side_by_side(tiny_models):
    model = tiny_models["gemma3"]
    whole = run_side_by_side(ReferenceExecutable(model.program, model.weights, n_pages=12), [IDS, IDS[:25]], 300)
    pieces = cut(model.program, random_places(model.program, np.random.default_rng(1)))
    parts = run_side_by_side(on_references(pieces, model.weights, lean=True), [IDS, IDS[:25]], 300)
    assert all(np.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(parts, whole, strict=True))


@pytest.mark.parametrize("arch", ARCHS)
def test_every_op_and_kv_layer_is_in_one_share_and_every_stage_in_the_order(arch, tiny_models):
    program = tiny_models[arch].program
    pieces = cut(program, random_places(program, np.random.default_rng(5), 12))
    own = [op for share in pieces.shares.values() for op in share.program.ops if not isinstance(op, (Receive, Tap))]
    assert len(own) == len(program.ops)
    assert sum(len(share.program.kv_layers) for share in pieces.shares.values()) == len(program.kv_layers)
    assert [share.program.logits for share in pieces.shares.values()].count(program.logits) == 1
    for place, share in pieces.shares.items():
        assert [number for at, number in pieces.order if at == place] == list(range(len(share.stages)))
        assert [stage.start for stage in share.stages] == [0, *(stage.stop for stage in share.stages[:-1])]
        assert share.stages[-1].stop == len(share.program.ops)
    assert all(a[0] != b[0] for a, b in zip(pieces.order, pieces.order[1:], strict=False))


def test_what_crosses_is_named_on_both_sides_and_crosses_once(tiny_models):
    program = tiny_models["llama"].program
    attends = (KvWrite, Attention)
    pieces = cut(program, ["cpu" if isinstance(op, attends) else "gpu" for op in program.ops])
    cpu, gpu = pieces.shares["cpu"], pieces.shares["gpu"]
    assert cpu.stages[1].receives == ("blk.1.attn_k_rope", "blk.1.attn_v", "blk.1.attn_q_rope")
    assert set(gpu.stages[1].sends) == set(cpu.stages[1].receives)
    for one, other in ((cpu, gpu), (gpu, cpu)):
        received = [name for stage in one.stages for name in stage.receives]
        assert len(received) == len(set(received))
        assert set(received) == {name for stage in other.stages for name in stage.sends} == set(other.program.taps())
    assert not gpu.program.kv_layers


def test_all_in_one_place_is_the_program_itself(tiny_models):
    program = tiny_models["qwen3moe"].program
    pieces = cut(program, ["gpu"] * len(program.ops))
    assert list(pieces.shares) == ["gpu"]
    assert pieces.shares["gpu"].program == program
    assert pieces.order == (("gpu", 0),)


def test_routed_rows_never_cross(tiny_models):
    program = tiny_models["gpt-oss"].program
    for seed in range(20):
        for share in cut(program, random_places(program, np.random.default_rng(seed), 20)).shares.values():
            crossing = {name for stage in share.stages for name in (*stage.receives, *stage.sends)}
            assert not any("ffn_expert_rows" in name or "exps" in name or "ffn_route" in name for name in crossing)


def test_adapters_stay_with_what_they_add_to(tmp_path, tiny_models):
    model = tiny_models["llama"]
    path = make_adapter(tmp_path / "a.gguf", {"blk.0.attn_q.weight": (64, 64), "blk.1.ffn_down.weight": (64, 128)})
    with open_gguf(path) as file:
        adapted = adapt(model, [read_adapter(file, "llama", model.program)])
    batch = replace(step([(IDS, 0, [0, 1, 2])], 16), adapter_scales=np.float32([[0.5]]))
    whole = run_all(ReferenceExecutable(adapted.program, adapted.weights, n_pages=3), [batch], 300)
    for seed in range(5):
        pieces = cut(adapted.program, random_places(adapted.program, np.random.default_rng(seed), 20))
        assert np.array_equal(run_all(on_references(pieces, adapted.weights), [batch], 300), whole)
        for share in pieces.shares.values():
            crossing = {name for stage in share.stages for name in stage.sends}
            assert not any(name.endswith(".plain") for name in crossing)


def test_taps_and_all_rows_are_cut_along(tiny_models):
    model = tiny_models["qwen2"]
    program = all_rows(with_taps(model.program, ["blk.0.attn", "blk.2.ffn_gated"]))
    batch = step([(IDS, 0, [0, 1, 2])], 16, [3, 8])
    whole = ReferenceExecutable(program, model.weights, n_pages=3)
    expected = run_all(whole, [batch], 300)
    pieces = cut(program, random_places(program, np.random.default_rng(2), 9))
    parts = on_references(pieces, model.weights)
    assert np.array_equal(run_all(parts, [batch], 300), expected)
    for name in ("blk.0.attn", "blk.2.ffn_gated"):
        (side,) = (side for side in parts.sides.values() if any(name in op.writes() for op in side.program.ops))
        assert np.array_equal(side.tapped(name), whole.tapped(name))


def test_places_are_settled_by_the_first_of_those_that_stay_together(tmp_path):
    choices = {"metadata": {"gemma2.final_logit_softcapping": 30.0}}
    program = bind(open_gguf(make_tiny_gguf(tmp_path / "m.gguf", "gemma2", **choices))).program
    places = ["cpu"] * (len(program.ops) - 1) + ["gpu"]
    assert set(settled(program, places)) == {"cpu"}
    written = next(i for i, op in enumerate(program.ops) if isinstance(op, KvWrite))
    moved = settled(program, ["gpu" if i == written else "cpu" for i in range(len(program.ops))])
    assert [type(op) for op, place in zip(program.ops, moved, strict=True) if place == "gpu"] == [KvWrite, Attention]


def test_a_broken_share_is_found():
    whole = tiny_share()
    check(whole)
    for broken, words in (
        (replace(whole, ops=whole.ops[1:]), "reads 'x' before"),
        (replace(whole, ops=(*whole.ops, Receive("z", asked=True)), widths=whole.widths | {"z": 4}), "never read"),
        (replace(whole, ops=(Receive("x", asked=True), *whole.ops[1:])), "mixes rows"),
        (replace(whole, ops=(*whole.ops[:-1], Embed("t", "x"))), "a second time"),
    ):
        with pytest.raises(AssertionError, match=words):
            check(broken)


def tiny_share():
    """`x` comes from elsewhere, `sum` goes there, and so do the logits."""
    from halfbyte.model.program import Program

    ops = (Receive("x"), Receive("y"), Linear("x", "w", "product"), Add("product", "y", "sum"), Tap("sum"))
    return Program(ops, dict.fromkeys(("x", "y", "product", "sum"), 4), (), "", 10)
