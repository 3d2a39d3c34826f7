"""Programs that keep values: which matrix multiplies which, and what the last layer sees of a text."""

import numpy as np
import pytest

from halfbyte.model.program import Linear, TakeRows
from halfbyte.model.reference import ReferenceExecutable
from halfbyte.model.row_range import row_range
from halfbyte.model.taps import ASKED, all_rows, head_of, linear_inputs, with_taps
from tests.model.batches import run_all, step

V, LENGTH = 300, 20
IDS = np.random.default_rng(3).integers(0, V, LENGTH)


def runner(model, program):
    return ReferenceExecutable(program, model.weights, n_pages=4)


def logits(executable, rows):
    return run_all(executable, [step([(IDS, 0, [0, 1])], 16, rows)], V)


def test_a_tapped_matrix_input_times_the_matrix_is_what_follows(model):
    inputs = linear_inputs(model.program)
    linear = next(op for op in model.program.ops if isinstance(op, Linear) and op.weight == "blk.1.attn_output.weight")
    tapped = runner(model, with_taps(model.program, [*inputs.values(), linear.out]))
    logits(tapped, range(LENGTH))
    product = tapped.tapped(inputs[linear.weight]) @ model.weights[linear.weight].decode().T
    assert np.array_equal(tapped.tapped(linear.out), product)


def test_every_matrix_has_an_input_of_its_width(model):
    inputs = linear_inputs(model.program)
    columns = {row_range(name).tensor: w.shape[1] for name, w in model.weights.items() if w.shape[0] > 1}
    columns = {name: width for name, width in columns.items() if not name.endswith(".bias")}
    table = {"token_embd.weight"} if head_of(model.program) == "output.weight" else set()
    assert inputs.keys() == columns.keys() - table
    assert all(model.program.widths[value] == columns[name] for name, value in inputs.items())
    shared = [inputs.get(f"blk.0.{stem}.weight") for stem in ("attn_q", "attn_k", "attn_v")]
    assert len(set(shared)) == 1


def test_taps_change_nothing_and_are_named_once(model):
    values = list(linear_inputs(model.program).values())
    program = with_taps(with_taps(model.program, values), values[:3])
    assert program.taps() == list(dict.fromkeys(values))
    assert np.array_equal(
        logits(runner(model, program), range(LENGTH)), logits(runner(model, model.program), range(LENGTH))
    )


def test_the_logits_are_no_tap(model):
    with pytest.raises(AssertionError, match="need no tap"):
        with_taps(model.program, [model.program.logits])


def test_the_last_layer_sees_the_asked_for_rows_alone_unless_all_rows_are_kept(model):
    last = max(name for name in linear_inputs(model.program) if name.startswith("blk.2.ffn"))
    plain, whole = model.program, all_rows(model.program)
    found = {}
    for program, rows in ((plain, range(LENGTH)), (plain, [4]), (whole, []), (whole, [4])):
        executable = runner(model, with_taps(program, [linear_inputs(program)[last]]))
        logits(executable, rows)
        found[program is whole, len(rows)] = executable.tapped(linear_inputs(program)[last])
    each = len(found[False, LENGTH]) // LENGTH  # rows of a token: as many as it has experts
    assert len(found[False, 1]) == each
    assert len(found[True, 0]) == LENGTH * each
    assert np.array_equal(found[True, 0], found[True, 1])
    np.testing.assert_allclose(found[True, 0], found[False, LENGTH], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rows", [[19], [7, 0, 7]])
def test_all_rows_answers_alike(model, rows):
    program = all_rows(model.program)
    assert [op.out for op in program.ops if isinstance(op, TakeRows)] == [ASKED]
    np.testing.assert_allclose(
        logits(runner(model, program), rows), logits(runner(model, model.program), rows), rtol=1e-4, atol=1e-4
    )
