"""Two backends behind one face: steps, pages, the best logits, traces, and a GPU that is lost."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.cpu_kernels.chooser import Chooser
from halfbyte.cpu_kernels.share import build_share
from halfbyte.errors import ResourceError
from halfbyte.formats import open_gguf
from halfbyte.model import bind
from halfbyte.model.pieces import cut
from halfbyte.model.program import Attention, KvWrite
from halfbyte.model.reference import ReferenceExecutable
from halfbyte.model.taps import with_taps
from halfbyte.runtime.hybrid import HybridExecutable
from tests.cpu_kernels.kernel_sets import DETECTED, ready
from tests.model.batches import run_all, run_side_by_side, step
from tests.model.shares import random_places, reference_of
from tests.model.tiny import make_tiny_gguf

VOCAB, N_PAGES = 300, 12
IDS = np.random.default_rng(6).integers(0, VOCAB, 40)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return bind(open_gguf(make_tiny_gguf(tmp_path_factory.mktemp("m") / "m.gguf", "gemma3", weights="f32")))


@pytest.fixture
def hybrid(model):
    """`hybrid(places)`: the CPU's kernels for one share, the reference in place of a GPU for the other."""
    made = []
    ready()

    def make(places, program=None, about=None):
        pieces = cut(program or model.program, places)
        sides = {"gpu": reference_of(pieces.shares["gpu"], model.weights, N_PAGES)}
        if "cpu" in pieces.shares:
            own = pieces.shares["cpu"]
            sizes = {"n_pages": N_PAGES, "max_tokens": 64, "threads": 2, "isa": DETECTED}
            sides["cpu"] = build_share(own.program, own.stages, model.weights, **sizes)
        chooser = sides.get("cpu") or Chooser(DETECTED)
        made.append(HybridExecutable(pieces, sides, chooser, about=about))
        return made[-1]

    yield make
    for runner in made:
        runner.close()


def half(program):
    return ["cpu" if index < len(program.ops) // 2 else "gpu" for index in range(len(program.ops))]


def whole(model):
    return ReferenceExecutable(model.program, model.weights, n_pages=N_PAGES)


def close(a, b):
    return float(np.linalg.norm(a - b) / np.linalg.norm(b)) < 2e-3


@pytest.mark.parametrize("seed", range(4))
def test_it_answers_as_the_whole_wherever_it_is_cut(seed, model, hybrid):
    runner = hybrid(random_places(model.program, np.random.default_rng(seed), 3 + 6 * seed))
    expected = run_side_by_side(whole(model), [IDS, IDS[:21]], VOCAB)
    for mine, one in zip(run_side_by_side(runner, [IDS, IDS[:21]], VOCAB), expected, strict=True):
        assert close(mine, one)


def test_all_on_the_gpu_leaves_the_choice_to_the_cpu(model, hybrid):
    runner = hybrid(["gpu"] * len(model.program.ops))
    logits = run_all(runner, [step([(IDS, 0, [0, 1, 2])], 16, [3, 39])], VOCAB)
    assert np.array_equal(logits, run_all(whole(model), [step([(IDS, 0, [0, 1, 2])], 16, [3, 39])], VOCAB))
    runner.expect([2, 4])
    best = runner.top_k_rows(logits, [2, 4])
    for row, k in ((0, 2), (1, 4)):
        assert np.array_equal(best[row][0], np.argsort(-logits[row], kind="stable")[:k])
    assert np.array_equal(runner.top_k(logits[1], 1)[0], [np.argmax(logits[1])])
    info = runner.info()
    assert info["backend"] == "cuda"
    assert info["threads"] == 1
    assert info["isa"].startswith("numpy (")


def test_noted_peaks_are_used_for_the_rows_they_are_of_and_no_others(model, hybrid):
    runner = hybrid(["gpu"] * len(model.program.ops))
    side, seen = runner._sides["gpu"], []
    choose = runner._chooser.top_k_rows
    runner._chooser.top_k_rows = lambda *given: seen.append(len(given)) or choose(*given)
    batch = step([(IDS, 0, [0, 1, 2])], 16, [3, 39])
    logits = np.empty((2, VOCAB), np.float32)
    runner.run(batch, logits)
    expected = runner.top_k_rows(logits, [3, 3])
    side.peaks = np.full((4, 32), -np.inf, np.float32)
    padded = np.full((2, 512), -np.inf, np.float32)
    padded[:, :VOCAB] = logits
    side.peaks[:2] = padded.reshape(2, 32, 16).max(2)
    noted = runner.top_k_rows(logits, [3, 3])
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(noted, expected, strict=True))
    runner.top_k_rows(logits.copy(), [3, 3])
    many = np.empty((8, VOCAB), np.float32)
    runner.run(step([(IDS, 0, [0, 1, 2])], 16, range(8)), many)
    runner.top_k_rows(many, [1] * 8)
    assert seen == [2, 3, 2, 2]


def test_a_page_is_that_of_both(model, hybrid):
    runner = hybrid(random_places(model.program, np.random.default_rng(2), 9))
    sides = runner._sides
    assert all(side.page_bytes for side in sides.values())
    assert runner.page_bytes == sum(side.page_bytes for side in sides.values())
    first = run_all(runner, [step([(IDS[:32], 0, [0, 1])], 16)], VOCAB)
    runner.copy_page(0, 5)
    page = np.empty(runner.page_bytes, np.uint8)
    runner.read_page(1, page)
    runner.write_page(7, page)
    rest = step([(IDS[32:], 32, [5, 7, 8])], 16)
    moved = run_all(runner, [rest], VOCAB)
    again = run_all(runner, [step([(IDS, 0, [0, 1, 2])], 16)], VOCAB)
    assert np.array_equal(again[:32], first) or close(again[:32], first)
    assert close(moved, again[32:])
    with pytest.raises(AssertionError):
        runner.read_page(0, page[:-1])


def test_a_side_without_keys_has_no_part_of_a_page(model, hybrid):
    runner = hybrid(["cpu" if isinstance(op, KvWrite | Attention) else "gpu" for op in model.program.ops])
    run_all(runner, [step([(IDS, 0, [0, 1, 2])], 16)], VOCAB)
    page = np.empty(runner.page_bytes, np.uint8)
    runner.read_page(0, page)
    runner.write_page(0, page)
    runner.copy_page(0, 1)
    assert runner.page_bytes == runner._sides["cpu"].page_bytes


def test_tapped_values_come_from_where_they_are(model, hybrid):
    names = ["blk.0.attn", "blk.2.ffn_gated"]
    program = with_taps(model.program, names)
    runner, plain = hybrid(half(program), program), ReferenceExecutable(program, model.weights, n_pages=N_PAGES)
    for one in (runner, plain):
        run_all(one, [step([(IDS, 0, [0, 1, 2])], 16)], VOCAB)
    assert all(close(runner.tapped(name), plain.tapped(name)) for name in names)


def test_spans_of_both_in_one_list_step_by_step(model, hybrid):
    runner = hybrid(half(model.program))
    runner.trace(True)
    for _ in range(2):
        run_all(runner, [step([(IDS, 0, [0, 1, 2])], 16)], VOCAB)
    runner.trace(False)
    spans = runner.spans()
    assert [span.step for span in spans] == sorted(span.step for span in spans)
    assert {span.step for span in spans} == {0, 1}
    assert {"Linear output", "Linear token_embd"} & {span.name for span in spans}
    assert {span.thread for span in spans} == {0, 1, 2}
    assert {span.name.split()[0] for span in spans if span.thread == 2} >= {"Linear", "Attention"}
    assert runner.spans() == []


def test_facts_name_both_sides_and_the_cut(model, hybrid):
    places = half(model.program)
    info = hybrid(places, about={"gpu": "a card"}).info()
    assert info["backend"] == "cuda+cpu"
    assert info["gpu"] == "a card"
    assert info["threads"] == 2
    assert info["kv_bytes"] > info["gpu_kv_bytes"] > 0
    assert info["packed_bytes"] > info["gpu_packed_bytes"] > 0
    assert {"reference"} < set(info["kernels"].split())
    assert info["isa"] == hybrid(places).info()["isa"]
    moved = ["cpu", *places[:-1]]
    assert info["isa"] != hybrid(moved).info()["isa"]
    assert info["isa"].startswith(f"{DETECTED} + numpy (")


def test_a_lost_gpu_ends_a_step_before_the_cpu_has_computed_anything(model, hybrid):
    runner = hybrid(half(model.program))
    batch = step([(IDS, 0, [0, 1, 2])], 16)
    run_all(runner, [batch], VOCAB)
    calls = []

    def lost(batch, logits):
        raise ResourceError("the GPU was lost; load the model again")

    runner._sides["gpu"].begin = lost
    runner._sides["cpu"].run_stage = calls.append
    for _ in range(3):
        with pytest.raises(ResourceError, match="lost; load the model again"):
            run_all(runner, [batch], VOCAB)
    assert calls == []


def test_a_bug_in_one_step_is_no_loss(model, hybrid):
    runner = hybrid(half(model.program))
    batch = step([(IDS, 0, [0, 1, 2])], 16)
    expected = run_all(runner, [batch], VOCAB)
    run_stage = runner._sides["gpu"].run_stage
    runner._sides["gpu"].run_stage = lambda number: 1 / 0
    with pytest.raises(ZeroDivisionError):
        run_all(runner, [batch], VOCAB)
    runner._sides["gpu"].run_stage = run_stage
    assert np.array_equal(run_all(runner, [batch], VOCAB), expected)


def test_closing_twice_closes_both(model, hybrid):
    runner = hybrid(half(model.program))
    runner.close()
    runner.close()
    with pytest.raises(ResourceError, match="closed"):
        run_all(runner, [step([(IDS, 0, [0, 1, 2])], 16)], VOCAB)
