"""The lean reference: the same answers in the memory of a few rows."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from halfbyte.model import streamed
from halfbyte.model.reference import ReferenceExecutable
from halfbyte.model.taps import linear_inputs, with_taps
from tests.model.batches import run_all, step, whole_prompt_batches

V = 300
IDS = np.arange(60) * 7 % V


def logits(model, chunks, *, lean):
    runner = ReferenceExecutable(model.program, model.weights, n_pages=12, page_len=8, lean=lean)
    return run_all(runner, whole_prompt_batches(IDS, 8, chunks), V)


@pytest.mark.parametrize("rows", [1, 7, 10**6])
def test_the_answer_does_not_depend_on_how_many_rows_are_decoded_at_a_time(model, monkeypatch, rows):
    monkeypatch.setattr(streamed, "CHUNK", 64 * rows)
    kept, lean = (logits(model, [25, 35], lean=lean) for lean in (False, True))
    assert np.linalg.norm(lean - kept) < 2e-3 * np.linalg.norm(kept)  # keys that are tipped to the next half


def test_part_of_a_weight_is_multiplied_alone(bound, monkeypatch):
    monkeypatch.setattr(streamed, "CHUNK", 64 * 3)
    weight = bound("llama", weights="q8_0").weights["blk.0.ffn_gate.weight"]
    x = np.linspace(-1, 1, 2 * 64, dtype=np.float32).reshape(2, 64)
    np.testing.assert_allclose(
        streamed.multiply(x, weight, slice(5, 19)), x @ weight.decode()[5:19].T, rtol=1e-5, atol=1e-5
    )


def test_memory_does_not_grow_with_the_model(bound):
    model = bound("llama", weights="q8_0", n_embd=256, n_ff=2048, n_layers=4)
    decoded = sum(4 * rows * columns for rows, columns in (weight.shape for weight in model.weights.values()))
    runner = ReferenceExecutable(model.program, model.weights, n_pages=2, page_len=8, lean=True)
    tracemalloc.start()
    run_all(runner, [step([(IDS[:12], 0, [0, 1])], 8)], V)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert decoded > 25e6
    assert peak < 5e6


def test_tapped_values_are_kept_although_nobody_reads_them_any_more(model):
    values = linear_inputs(model.program).values()
    tapped = with_taps(model.program, values)
    kept, lean = (
        ReferenceExecutable(tapped, model.weights, n_pages=12, page_len=8, lean=lean) for lean in (False, True)
    )
    for runner in (kept, lean):
        run_all(runner, whole_prompt_batches(IDS, 8, [60]), V)
    assert all(lean.tapped(name).shape == kept.tapped(name).shape for name in values)
