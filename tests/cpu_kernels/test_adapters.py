"""Adapters on the CPU backend: what the reference adds, and not a bit nor an instruction where nobody asks for one."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from halfbyte.cpu_kernels import executable
from halfbyte.formats import open_gguf
from halfbyte.model import bind
from halfbyte.model.adapt import adapt
from halfbyte.model.adapter import read_adapter
from halfbyte.model.archs import ARCHS
from halfbyte.model.program import Linear
from halfbyte.model.reference import ReferenceExecutable
from halfbyte.model.row_range import row_range
from halfbyte.model.weights import tensor_shapes
from tests.cpu_kernels.kernel_sets import DETECTED, ready
from tests.cpu_kernels.lowered import overlapping_lives, races
from tests.cpu_kernels.programs import IDS, MIXED, N_PAGES, PAGE_LEN, VOCAB, distance, poison
from tests.model.adapters import make_adapter
from tests.model.batches import run_all, step
from tests.model.tiny import make_tiny_gguf

CHANGED = (
    ("blk.0.attn_q", "blk.0.attn_v", "blk.1.attn_output", "blk.2.ffn_down"),
    ("blk.0.attn_q", "blk.1.ffn_gate", "blk.1.ffn_up", "output"),
)
# Relative L2 against the reference, which does not round the inputs of quantized matrices. Measured: 2.1e-4 at most.
BUDGET = 1e-3


@pytest.fixture(scope="module", params=["f32", "mixed"])
def models(request, tmp_path_factory):
    """A model, and the same with two adapters, of 5 and of 16 columns."""
    folder = tmp_path_factory.mktemp("model")
    choices = MIXED if request.param == "mixed" else {"weights": "f32"}
    plain = bind(open_gguf(make_tiny_gguf(folder / "model.gguf", **choices)))
    adapters = []
    for number, (stems, format) in enumerate(zip(CHANGED, ("f32", "f16"), strict=True)):
        shapes = {f"{stem}.weight": plain.weights[f"{stem}.weight"].shape for stem in stems}
        path = make_adapter(folder / f"{number}.gguf", shapes, rank=(5, 16)[number], seed=number, format=format)
        with open_gguf(path) as file:
            adapters.append(read_adapter(file, "llama", plain.program))
    return plain, adapt(plain, adapters)


def build(model, threads=1):
    ready()
    return executable.build(
        model.program, model.weights, n_pages=N_PAGES, max_tokens=160, isa=DETECTED, threads=threads
    )


def with_scales(batch, *scales):
    return replace(batch, adapter_scales=np.asarray(scales, np.float32))


def prompt(*scales, rows=None):
    """All ids of one sequence in a step."""
    batch = step([(IDS, 0, range(5))], PAGE_LEN, rows)
    return with_scales(batch, scales) if scales else batch


def logits_of(runner, *batches):
    return run_all(runner, batches, VOCAB)


@pytest.mark.parametrize("scales", [(1, 0), (0, 0.5), (1, -2), (0, 0)])
def test_adapted_logits_are_the_references(models, scales):
    _, adapted = models
    reference = ReferenceExecutable(adapted.program, adapted.weights, n_pages=N_PAGES)
    runner = build(adapted)
    poison(runner)
    assert distance(logits_of(runner, prompt(*scales)), logits_of(reference, prompt(*scales))) < BUDGET
    runner.close()


def test_an_adapter_makes_a_difference(models):
    runner = build(models[1])
    plain, *others = (logits_of(runner, prompt(*scales)) for scales in ((0, 0), (1, 0), (0, 1), (2, 0)))
    assert min(distance(other, plain) for other in others) > 0.05
    assert distance(others[0], others[2]) > 0.05
    runner.close()


def test_without_adapters_logits_are_those_of_the_model_to_the_bit(models):
    plain, adapted = models
    expected = logits_of(build(plain), prompt())
    runner = build(adapted, threads=2)
    logits_of(runner, prompt(1, 1))
    for batch in (prompt(), prompt(0, 0)):
        assert np.array_equal(logits_of(runner, batch), expected)
    runner.close()


def twofold(placed):
    """How many calls write float32 and int8 of a value."""
    return sum(bool(call.operands.get("quantized") and call.operands.get("out")) for call in placed.calls)


def test_steps_without_adapters_run_the_instructions_of_the_model(models):
    plain, adapted = build(models[0]), build(models[1])
    none, one = (adapted._versions.of(scales) for scales in (None, np.float32([[0, 0], [0, 3]])))
    fused = [call.kernel for call in plain._placed.calls if call.kernel != "quantize"]
    assert [call.adapter for call in none.placed.calls if call.adapter is not None] == []
    # Sums and int8 forms that products and norms make along stand by themselves in a model with adapters.
    own = [call.kernel for call in none.placed.calls if call.kernel not in ("quantize", "add")]
    assert own == fused
    assert {call.adapter for call in one.placed.calls} == {None, 1}
    assert none.placed.length < one.placed.length < adapted._placed.length
    # Values that only adapters want as float32 are int8 alone.
    assert twofold(none.placed) == twofold(plain._placed)
    if any(call.operands.get("quantized") for call in plain._placed.calls):
        assert twofold(one.placed) > twofold(none.placed)


@pytest.mark.parametrize("chunks", [[70], [1] * 12 + [58], [33, 5, 32]])
def test_each_sequence_of_a_mixed_step_is_as_if_it_were_alone(models, chunks):
    scales = [(0, 0), (1, 0), (0, 1), (0.5, 2)]
    runner = build(models[1], threads=2)
    alone = [logits_of(runner, prompt(*one)) for one in scales[:2]] + [
        logits_of(runner, prompt(*one, rows=range(10))) for one in scales[2:]
    ]
    poison(runner)
    start, parts = 0, {0: [], 1: []}
    for size in chunks:
        shares = [(IDS[start : start + size], start, range(s * 5, s * 5 + 5)) for s in (0, 1)]
        if start == 0:
            shares += [(IDS[:10], 0, [10]), (IDS[:10], 0, [11])]
        batch = with_scales(step(shares, PAGE_LEN), *scales[: len(shares)])
        together = logits_of(runner, batch)
        for s in (0, 1):
            parts[s].append(together[s * size : (s + 1) * size])
        if start == 0:
            assert np.array_equal(together[2 * size : 2 * size + 10], alone[2])
            assert np.array_equal(together[2 * size + 10 :], alone[3])
        start += size
    for s in (0, 1):
        assert np.array_equal(np.concatenate(parts[s]), alone[s])
    runner.close()


def test_what_is_no_number_stays_with_who_asked_for_it(models):
    plain, adapted = models
    bad = {name: w for name, w in adapted.weights.items() if name.startswith("adapter0") and name.endswith("lora_b")}
    spoilt = {name: replace(w, data=np.full_like(w.data, 255)) for name, w in bad.items()}
    runner = build(SimpleNamespace(program=adapted.program, weights=adapted.weights | spoilt))
    batch = with_scales(step([(IDS[:20], 0, [0, 1]), (IDS[:20], 0, [2, 3])], PAGE_LEN), (0, 0), (1, 0))
    logits = logits_of(runner, batch)
    assert len(spoilt) == len(CHANGED[0])
    assert np.array_equal(logits[:20], logits_of(build(plain), step([(IDS[:20], 0, [0, 1])], PAGE_LEN)))
    assert np.isnan(logits[20:]).all()
    runner.close()


@pytest.mark.parametrize("used", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_no_two_calls_disturb_each_other_and_no_two_values_share_memory(models, used):
    runner = build(models[1])
    runner._placed = runner._versions.of(np.float32([used])).placed
    assert races(runner) == []
    assert overlapping_lives(runner) == []


def test_a_trace_tells_of_what_ran(models):
    runner = build(models[1])
    runner.trace(True)
    for scales in ((1, 0), (0, 0), (1, 0)):
        logits_of(runner, prompt(*scales))
    spans = runner.spans()
    assert [span.step for span in spans] == sorted(span.step for span in spans)
    assert {span.step for span in spans if "adapter0" in span.name} == {0, 2}
    assert not any("adapter1" in span.name for span in spans)
    runner.close()


def test_choosing_along_with_a_step_works_in_every_version(models):
    runner = build(models[1])
    for scales in ((0, 0), (1, 0), (0, 1), (0, 0)):
        batch, logits = prompt(*scales, rows=[69]), np.empty((1, VOCAB), np.float32)
        runner.expect([3])
        runner.run(batch, logits)
        (best,) = runner.top_k_rows(logits, [3])
        assert best[0].tolist() == np.argsort(-logits[0], kind="stable")[:3].tolist()
    runner.close()


@pytest.mark.parametrize("arch", sorted(set(ARCHS) - {"bert", "nomic-bert", "llama"}))
def test_matrices_of_every_architecture(tmp_path, arch):
    plain = bind(open_gguf(make_tiny_gguf(tmp_path / "model.gguf", arch, weights="q8_0")))
    matrices = {row_range(op.weight).tensor for op in plain.program.ops if isinstance(op, Linear)} - {
        "token_embd.weight"
    }
    shapes = {name: shape for name, shape in tensor_shapes(plain.program).items() if name in matrices}
    with open_gguf(make_adapter(tmp_path / "a.gguf", shapes, arch=arch, size=0.05)) as file:
        adapted = adapt(plain, [read_adapter(file, arch, plain.program)])
    reference = ReferenceExecutable(adapted.program, adapted.weights, n_pages=N_PAGES)
    runner = build(adapted, threads=2)
    poison(runner)
    assert distance(logits_of(runner, prompt(1)), logits_of(reference, prompt(1))) < 3 * BUDGET
    assert np.array_equal(logits_of(runner, prompt(0)), logits_of(build(plain), prompt()))
    for used in ((0,), (1,)):
        runner._placed = runner._versions.of(np.float32([used])).placed
        assert races(runner) == []
        assert overlapping_lives(runner) == []
    runner.close()
