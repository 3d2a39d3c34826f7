"""The reference gives one answer however a prompt is cut and whoever else is in the step."""

import time

import numpy as np
import pytest

from halfbyte.model.kv_types import KvTypes
from halfbyte.model.reference import ReferenceExecutable
from halfbyte.model.row_range import row_range
from tests.model.batches import run_all, step, whole_prompt_batches
from tests.model.tiny_traits import USUAL

V = 300
F32 = KvTypes("f32", "f32")


def executable(model, n_pages=12, kv=F32):
    return ReferenceExecutable(model.program, model.weights, n_pages=n_pages, page_len=8, kv=kv)


def error(got, wanted):
    return np.linalg.norm(got - wanted) / np.linalg.norm(wanted)


@pytest.fixture
def ids(rng):
    return rng.integers(0, V, 60)


@pytest.mark.parametrize("chunks", [[1], [7, 1, 30, 2], [59, 1]])
def test_a_prompt_in_chunks_equals_the_whole(model, ids, chunks):
    whole = run_all(executable(model), whole_prompt_batches(ids, 8, [60]), V)
    parts = run_all(executable(model), whole_prompt_batches(ids, 8, chunks), V)
    assert np.isfinite(whole).all()
    assert error(parts, whole) < 1e-5


def test_half_precision_keys_and_values_cost_little(model, ids):
    exact = run_all(executable(model), whole_prompt_batches(ids, 8, [60]), V)
    rounded = run_all(executable(model, kv=KvTypes()), whole_prompt_batches(ids, 8, [60]), V)
    assert 1e-6 < error(rounded, exact) < 2e-3


def test_only_asked_for_rows_are_computed_and_they_are_the_same(model, ids):
    whole = run_all(executable(model), whole_prompt_batches(ids, 8, [60]), V)
    last = run_all(executable(model), whole_prompt_batches(ids, 8, [25, 35], rows="last"), V)
    assert error(last, whole[[24, 59]]) < 1e-5


def test_two_sequences_in_a_step_do_not_see_each_other(model, ids):
    one, two = ids[:33], ids[33:]
    pages = ([9, 1, 4, 0, 7], [3, 11, 2, 5])
    alone = [run_all(executable(model), whole_prompt_batches(part, 8, [60]), V) for part in (one, two)]
    ex = executable(model)
    batches = [
        step([(one[:20], 0, pages[0])], 8),
        step([(one[20:32], 20, pages[0]), (two[:26], 0, pages[1])], 8),
        step([(two[26:], 26, pages[1]), (one[32:], 32, pages[0])], 8),
    ]
    got = run_all(ex, batches, V)
    assert error(got[:32], alone[0][:32]) < 1e-5
    assert error(got[32:58], alone[1][:26]) < 1e-5
    assert error(got[58:], np.stack([alone[1][26], alone[0][32]])) < 1e-5


def test_a_copied_page_serves_another_sequence(model, ids):
    ex = executable(model)
    run_all(ex, whole_prompt_batches(ids[:8], 8, [8], pages=[5]), V)
    ex.copy_page(5, 2)
    run_all(ex, whole_prompt_batches(ids[50:58], 8, [8], pages=[5]), V)
    continued = run_all(ex, [step([(ids[8:10], 8, [2, 3])], 8)], V)
    assert error(continued, run_all(executable(model), whole_prompt_batches(ids[:10], 8, [10]), V)[8:]) < 1e-5


def test_a_page_serves_another_executable_as_bytes(model, ids):
    source, target = executable(model), executable(model)
    run_all(source, whole_prompt_batches(ids[:8], 8, [8], pages=[5]), V)
    data = np.zeros(source.page_bytes, np.uint8)
    source.read_page(5, data)
    target.write_page(2, data)
    continued = run_all(target, [step([(ids[8:10], 8, [2, 3])], 8)], V)
    assert error(continued, run_all(source, [step([(ids[8:10], 8, [5, 3])], 8)], V)) < 1e-6


def test_no_token_sees_what_comes_after_it(model, ids):
    changed = ids.copy()
    changed[40:] = (changed[40:] + 1) % V
    before, after = (run_all(executable(model), whole_prompt_batches(x, 8, [60]), V) for x in (ids, changed))
    assert error(after[:40], before[:40]) < 1e-5
    assert error(after[40:], before[40:]) > 0.1


def test_every_earlier_token_counts_where_there_is_no_window(tiny_models, ids):
    changed = ids.copy()
    changed[0] = (changed[0] + 1) % V
    before, after = (
        run_all(executable(tiny_models["llama"]), whole_prompt_batches(x, 8, [60]), V) for x in (ids, changed)
    )
    assert (np.abs(after - before).max(axis=1) > 1e-4).all()


def decoded_tensors(model):
    """Matrices that share a tensor follow one another in a program."""
    parts = {}
    for name, weight in model.weights.items():
        if weight.shape[0] > 1:
            parts.setdefault(row_range(name).tensor, []).append(weight.decode())
    return {name: np.concatenate(rows) for name, rows in parts.items()}


@pytest.mark.parametrize("arch", USUAL)
def test_weights_in_blocks_are_the_weights_they_decode_to(bound, ids, arch):
    blocks = bound(arch, weights="q5_1")
    plain = bound(arch, tensors=decoded_tensors(blocks))
    got, wanted = (run_all(executable(m), whole_prompt_batches(ids[:9], 8, [9]), V) for m in (blocks, plain))
    assert error(got, wanted) < 1e-6


def test_top_k_puts_the_lower_id_first_and_leaves_nan_out(model):
    logits = np.float32([1, np.nan, 5, 5, -np.inf, 2])
    best, values = executable(model).top_k(logits, 4)
    assert best.tolist() == [2, 3, 5, 0]
    assert values.tolist() == [5, 5, 2, 1]
    assert executable(model).top_k(logits, 99)[0].tolist() == [2, 3, 5, 0, 4]


def test_info_counts_bytes(model):
    ex = executable(model, n_pages=3, kv=KvTypes())
    kv = model.program.kv_layers
    assert ex.info()["kv_bytes"] == sum(2 * 24 * layer.kv_heads * (layer.key_size + layer.value_size) for layer in kv)
    ex.close()
    ex.close()


def test_a_trace_names_every_op_with_its_weight_once_a_step(model, ids):
    ex = executable(model)
    run_all(ex, whole_prompt_batches(ids, 8, [60]), V)
    ex.trace(True)
    before = time.perf_counter()
    run_all(ex, whole_prompt_batches(ids, 8, [30]), V)
    after = time.perf_counter()
    spans = ex.spans()
    assert [span.step for span in spans] == [number for number in (1, 2) for _ in model.program.ops]
    assert "Linear blk.1.attn_output" in {span.name for span in spans}
    times = [before, *(at for span in spans for at in (span.start_s, span.end_s)), after]
    assert times == sorted(times)
    ex.trace(False)
    run_all(ex, whole_prompt_batches(ids, 8, [60]), V)
    assert ex.spans() == []
