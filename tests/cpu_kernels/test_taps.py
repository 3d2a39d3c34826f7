"""Tapped values on the CPU: what the reference has, at the price of no call and no bit of the logits."""

import numpy as np
import pytest

from halfbyte.errors import UnsupportedError
from halfbyte.formats import open_gguf
from halfbyte.model import bind
from halfbyte.model.bind import BoundModel
from halfbyte.model.reference import ReferenceExecutable
from halfbyte.model.taps import all_rows, linear_inputs, with_taps
from tests.cpu_kernels.lowered import overlapping_lives, races, touches
from tests.cpu_kernels.programs import ARCHS, IDS, LENGTH, MIXED, N_PAGES, PAGE_LEN, VOCAB, build, distance, poison
from tests.model.batches import run_all, step
from tests.model.tiny import make_tiny_gguf

CLOSE = 3e-3
"""Relative L2 of a value. Logits have 1.5e-3; values in the middle of a layer have twice as much at most."""
KINDS = {"f32": {"weights": "f32"}, "mixed": MIXED}
ROWS = [69, 3, 3, 40]


def rewritten(model, program):
    return BoundModel(model.spec, program, model.weights, model.context)


@pytest.fixture(scope="module", params=[(arch, kind) for arch in ARCHS for kind in KINDS], ids="-".join)
def model(request, tmp_path_factory):
    arch, kind = request.param
    path = tmp_path_factory.mktemp("model") / "model.gguf"
    return bind(open_gguf(make_tiny_gguf(path, arch, **KINDS[kind])))


@pytest.fixture
def built():
    made = []

    def make(model, program, threads=1):
        made.append(build(rewritten(model, program), threads=threads))
        poison(made[-1])
        return made[-1]

    yield make
    for runner in made:
        runner.close()


def run(runner, rows=None, length=LENGTH):
    return run_all(runner, [step([(IDS[:length], 0, [0, 1, 2, 3, 4])], PAGE_LEN, rows)], VOCAB)


def tappable(program):
    """All values but those that become the logits in place."""
    return [name for name in program.widths if not name.startswith("logits")]


@pytest.mark.parametrize("change", [lambda program: program, all_rows], ids=["as built", "all rows"])
def test_every_value_is_what_the_reference_has(model, built, change):
    program = change(model.program)
    program = with_taps(program, tappable(program))
    cpu = built(model, program, threads=2)
    reference = ReferenceExecutable(program, model.weights, n_pages=N_PAGES)
    run(cpu, ROWS)
    run(reference, ROWS)
    for name in program.taps():
        assert cpu.tapped(name).shape == reference.tapped(name).shape
        assert distance(cpu.tapped(name), reference.tapped(name)) < CLOSE, name


def test_the_logits_are_the_same_bits_with_taps_and_without(model, built):
    plain = run(built(model, model.program))
    assert np.array_equal(run(built(model, with_taps(model.program, linear_inputs(model.program).values()))), plain)
    assert np.array_equal(run(built(model, with_taps(model.program, tappable(model.program)), threads=2)), plain)
    assert np.array_equal(run(built(model, all_rows(model.program)), ROWS), plain[ROWS])


def test_tapping_what_matrices_multiply_costs_no_call(model, built):
    plain = [(call.kernel, call.layout) for call in built(model, model.program)._placed.plan.lowering.calls]
    program = with_taps(model.program, linear_inputs(model.program).values())
    assert [(call.kernel, call.layout) for call in built(model, program)._placed.plan.lowering.calls] == plain


def test_nothing_is_written_over_a_tapped_value(model, built):
    program = with_taps(model.program, tappable(model.program))
    runner = built(model, program, threads=2)
    assert races(runner) == []
    assert overlapping_lives(runner) == []
    kept, found = set(program.taps()), touches(runner)
    for name in kept:
        mine = [touch for touch in found if touch.name == name]
        first = min(touch.call for touch in mine)
        later = [touch for touch in found if touch.call > first and touch.writes and touch.name != name]
        assert not any(touch.begin < own.end and own.begin < touch.end for touch in later for own in mine), name


def test_a_tapped_value_has_the_rows_of_the_last_step(model, built):
    program = with_taps(model.program, ["blk.0.attn", "output_norm"])
    runner = built(model, program)
    run(runner)
    run(runner, rows=[5, 8], length=9)
    assert len(runner.tapped("blk.0.attn")) == 9
    assert len(runner.tapped("output_norm")) == 2
    run(runner, rows=[])
    assert runner.tapped("output_norm").shape[0] == 0


def test_logits_made_in_place_cannot_be_tapped(tmp_path):
    path = make_tiny_gguf(tmp_path / "m.gguf", "gemma3", metadata={"gemma3.final_logit_softcapping": 30.0})
    model = bind(open_gguf(path))
    with pytest.raises(UnsupportedError, match="'logits' in place"):
        build(rewritten(model, with_taps(model.program, ["logits"])))
