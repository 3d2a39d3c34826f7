"""A share of a program on the CPU: what it computes stage by stage is what the whole computes, to the bit."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from halfbyte.cpu_kernels.chooser import Chooser
from halfbyte.cpu_kernels.share import build_share
from halfbyte.errors import ConfigError, ResourceError
from halfbyte.formats import open_gguf
from halfbyte.model import bind
from halfbyte.model.adapt import adapt
from halfbyte.model.adapter import read_adapter
from halfbyte.model.backend import WAIT
from halfbyte.model.pieces import cut
from halfbyte.model.program import Attention, Embed, KvWrite, Linear
from tests.cpu_kernels.kernel_sets import DETECTED, ready
from tests.cpu_kernels.lowered import overlapping_lives, races
from tests.cpu_kernels.programs import IDS, LENGTH, MIXED, N_PAGES, PAGE_LEN, VOCAB, build, logits_of, poison
from tests.model.adapters import make_adapter
from tests.model.batches import run_all, step, whole_prompt_batches
from tests.model.shares import TakingTurns, random_places
from tests.model.tiny import make_tiny_gguf

ARCHS = ("llama", "gemma3", "qwen3moe", "lfm2", "gpt-oss", "phi3")
SIZES = {"n_pages": N_PAGES, "max_tokens": LENGTH, "isa": DETECTED}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    ready()
    made = {arch: make_tiny_gguf(folder / f"{arch}.gguf", arch, weights="q8_0") for arch in ARCHS}
    made["mixed"] = make_tiny_gguf(folder / "mixed.gguf", "llama", **MIXED)
    made["bf16 words"] = make_tiny_gguf(folder / "f64.gguf", "llama", formats={"token_embd": "bf16"})
    return {name: bind(open_gguf(path)) for name, path in made.items()}


@pytest.fixture
def shares():
    made = []

    def make(model, places, threads=1):
        pieces = cut(model.program, places)
        sides = {
            place: build_share(share.program, share.stages, model.weights, threads=threads, **SIZES)
            for place, share in pieces.shares.items()
        }
        for side in sides.values():
            poison(side)
        made.append(TakingTurns(pieces, sides))
        return made[-1]

    yield make
    for runner in made:
        for side in runner.sides.values():
            side.close()


@pytest.mark.parametrize("name", [*ARCHS, "mixed", "bf16 words"])
def test_two_shares_give_the_bits_of_the_whole(name, models, shares):
    model = models[name]
    whole = build(model, threads=2)
    expected = logits_of(whole, (23, 1))
    whole.close()
    for seed in range(4):
        places = random_places(model.program, np.random.default_rng(seed), 3 + 8 * seed)
        parts = shares(model, places, threads=1 + seed % 2)
        for side in parts.sides.values():
            assert races(side) == []
            assert overlapping_lives(side) == []
        assert np.array_equal(logits_of(parts, (23, 1)), expected), seed


def test_nothing_is_written_over_what_is_received_until_it_is_read(models, shares):
    model = models["mixed"]
    parts = shares(model, random_places(model.program, np.random.default_rng(8), 9))
    sides, stages = parts.sides, {place: share.stages for place, share in parts.pieces.shares.items()}
    batch = step([(IDS, 0, [0, 1, 2, 3, 4])], PAGE_LEN)
    expected = run_all(parts, [batch], VOCAB)
    again = np.full_like(expected, np.nan)
    values = {name: side.sent(name).copy() for at, side in sides.items() for s in stages[at] for name in s.sends}
    for place, side in sides.items():
        side.begin(batch, again if parts.pieces.shares[place].program.logits else None)
        for stage in stages[place]:
            for name in stage.receives:  # all at once, long before their stages
                side.receive(name)[:] = values[name]
    for place, number in parts.pieces.order:
        sides[place].run_stage(number)
    assert np.array_equal(again, expected)
    assert all(
        np.array_equal(side.sent(n), values[n]) for at, side in sides.items() for s in stages[at] for n in s.sends
    )


def test_a_cut_costs_no_call_but_those_of_what_comes_in(models, shares):
    model = models["mixed"]
    whole = build(model)
    places = ["cpu" if index < 20 else "gpu" for index in range(len(model.program.ops))]
    calls = [call.kernel for side in shares(model, places).sides.values() for call in side._placed.calls]
    assert sum(kernel != "angles" for kernel in calls) <= whole._placed.length + 2
    whole.close()


def test_keys_and_values_alone(models, shares):
    """A share without a matrix or words."""
    model = models["llama"]
    places = ["cpu" if isinstance(op, KvWrite | Attention) else "gpu" for op in model.program.ops]
    parts = shares(model, places)
    assert parts.sides["gpu"].page_bytes == 0
    whole = build(model)
    assert np.array_equal(logits_of(parts, (9,)), logits_of(whole, (9,)))
    page, other = (np.empty(whole.page_bytes, np.uint8) for _ in range(2))
    whole.read_page(1, page)
    parts.sides["cpu"].read_page(1, other)
    assert np.array_equal(page, other)
    whole.close()


def test_words_alone(models, shares):
    for name in ("mixed", "bf16 words"):
        model = models[name]
        parts = shares(model, ["cpu" if isinstance(op, Embed) else "gpu" for op in model.program.ops])
        whole = build(model)
        assert np.array_equal(logits_of(parts), logits_of(whole))
        whole.close()


def test_steps_with_and_without_an_adapter(tmp_path, models, shares):
    path = make_adapter(tmp_path / "a.gguf", {"blk.0.attn_q.weight": (64, 64), "blk.1.ffn_down.weight": (64, 128)})
    model = models["llama"]
    with open_gguf(path) as file:
        model = adapt(model, [read_adapter(file, "llama", model.program)])
    plain = step([(IDS, 0, [0, 1, 2, 3, 4])], PAGE_LEN)
    batches = [plain, replace(plain, adapter_scales=np.float32([[0.5]])), plain]
    whole = build(model)
    expected = run_all(whole, batches, VOCAB)
    assert not np.array_equal(expected[:LENGTH], expected[LENGTH : 2 * LENGTH])
    for seed in range(3):
        places = random_places(model.program, np.random.default_rng(seed), 14)
        assert np.array_equal(run_all(shares(model, places), batches, VOCAB), expected)
    whole.close()


def test_the_best_logits_are_found_along_with_the_last_stage_only(models, shares):
    model = models["mixed"]
    head = next(op for op in reversed(model.program.ops) if isinstance(op, Linear))
    for owner, other in (("cpu", "gpu"), ("gpu", "cpu")):
        parts = shares(model, [owner if op is head else other for op in model.program.ops], threads=2)
        (batch,) = whole_prompt_batches(IDS[:20], PAGE_LEN, (20,), rows="last")
        for ks in ([3], [0], [40]):
            logits = np.full((1, VOCAB), np.nan, np.float32)
            for side in parts.sides.values():
                side.expect(ks)
            parts.run(batch, logits)
            for side in parts.sides.values():
                (best,) = side.top_k_rows(logits, ks)
                if not ks[0]:
                    assert best is None
                    continue
                order = np.argsort(-logits[0], kind="stable")[: ks[0]]
                assert np.array_equal(best[0], order)
                assert np.array_equal(best[1], logits[0][order])


def test_spans_are_those_of_all_stages(models, shares):
    model = models["mixed"]
    parts = shares(model, random_places(model.program, np.random.default_rng(4), 6), threads=2)
    side = parts.sides["cpu"]
    logits_of(parts, (LENGTH,))
    side.trace(True)
    logits_of(parts, (35,))
    side.trace(False)
    spans = side.spans()
    labels = [call.label for call in side._placed.calls]
    assert {span.step for span in spans} == {1, 2}
    for number in (1, 2):
        for thread in (0, 1):
            mine = [span for span in spans if (span.step, span.thread) == (number, thread)]
            assert [span.name for span in mine if span.name != WAIT] == labels
            assert all(a.start_s <= b.start_s for a, b in itertools.pairwise(mine))
    assert side.spans() == []


def test_a_chooser_chooses_as_an_executable_does_and_closes(rng):
    ready()
    chooser = Chooser(DETECTED)
    logits = rng.standard_normal((3, 500)).astype(np.float32)
    logits[0, 7] = np.nan
    tiles = np.full((3, 32), -np.inf, np.float32)
    padded = np.full((3, 512), -np.inf, np.float32)
    padded[:, :500] = np.where(np.isnan(logits), -np.inf, logits)
    tiles[:] = padded.reshape(3, 32, 16).max(2)
    for peaks in (None, tiles):
        found = chooser.top_k_rows(logits, [5, 0, 1], peaks)
        for row, k in ((0, 5), (2, 1)):
            order = np.argsort(-padded[row], kind="stable")[:k]
            assert np.array_equal(found[row][0], order)
        assert found[1] is None
    assert chooser.info() == {"isa": DETECTED, "threads": 1}
    chooser.close()
    chooser.close()
    with pytest.raises(ResourceError, match="closed"):
        chooser.top_k_rows(logits, [1, 1, 1])
    with pytest.raises(ConfigError, match="unknown isa"):
        Chooser("abacus")


def test_a_closed_share_says_so(models, shares):
    model = models["llama"]
    parts = shares(model, ["cpu"] * 10 + ["gpu"] * (len(model.program.ops) - 10))
    logits_of(parts)
    for side in parts.sides.values():
        side.close()
        with pytest.raises(ResourceError, match="closed"):
            side.begin(step([(IDS, 0, [0, 1, 2, 3, 4])], PAGE_LEN), None)
        with pytest.raises(ResourceError, match="closed"):
            side.run_stage(0)
