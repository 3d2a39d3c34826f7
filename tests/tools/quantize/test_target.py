"""A file of a given size holds the formats that move the answers least."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.errors import ConfigError, UnsupportedError
from halfbyte.formats import open_gguf
from halfbyte.quant.recipes import recipe_named
from halfbyte.quant.search import NUMPY
from halfbyte.quant.walk import NUMPY_WALK
from halfbyte.tools.quantize import quantizer
from halfbyte.tools.quantize.candidates import measured_candidates
from halfbyte.tools.quantize.choices import Choices
from halfbyte.tools.quantize.encoding import NearestCodes
from halfbyte.tools.quantize.override import Override
from halfbyte.tools.quantize.plan import make_plan
from halfbyte.tools.quantize.quantizer import Quantizer
from halfbyte.tools.quantize.sensitivity import sensitivities
from halfbyte.tools.quantize.target import Target, fit_target
from tests.model.tiny import make_tiny_gguf

TEXT = "a small text about nothing at all, and then another one of the same kind. " * 6


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = make_tiny_gguf(tmp_path_factory.mktemp("target") / "source.gguf", n_embd=64, n_ff=96, n_layers=2)
    return open_gguf(path)


@pytest.fixture(scope="module")
def candidates(source):
    return measured_candidates(source, choices(), NearestCodes(), [TEXT])


def choices(*types, **more):
    return Choices(recipe_named("q4_k_m"), tuple(map(Override.parse, types)), **more)


def test_more_bytes_cost_less_divergence(candidates):
    assert "blk.0.attn_q.weight" in candidates
    for options in candidates.values():
        sizes, costs = [c.n_bytes for c in options], [c.divergence for c in options]
        assert sizes == sorted(set(sizes))
        assert costs == sorted(set(costs), reverse=True)
        assert len(options) > 2


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_the_file_is_as_large_as_it_may_be_and_no_larger(source, candidates, share):
    least, most = (make_plan(source, Choices(recipe_named(name), pure=True)).file_bytes for name in ("q4_0", "q8_0"))
    target = int(least + share * (most - least))
    fitted = fit_target(source, choices(), candidates, Target(file_bytes=target))
    # Among few tensors there is not always one to spend the rest on.
    assert 0.95 * target < fitted.plan.file_bytes <= target


def test_bits_a_weight_are_met(source, candidates):
    plan = fit_target(source, choices(), candidates, Target(bits_per_weight=5.5)).plan
    assert 5.2 < plan.bits_per_weight <= 5.5


def test_larger_files_are_nearer(source, candidates):
    found = [fit_target(source, choices(), candidates, Target(bits_per_weight=b)).divergence for b in (5, 5.5, 6, 7, 8)]
    assert found == sorted(set(found), reverse=True)


def test_it_is_better_than_one_format_for_all_of_the_same_size(source, candidates):
    formats = {format.name for format in (c.format for c in candidates["output.weight"])}
    for name in formats - {"q8_0"}:
        alike = make_plan(source, Choices(recipe_named(name), pure=True))
        cost = sum(
            next((c.divergence for c in options if c.format.name == name), np.inf) for options in candidates.values()
        )
        assert fit_target(source, choices(), candidates, Target(file_bytes=alike.file_bytes + 2000)).divergence < cost


def test_the_recipe_in_the_file_makes_the_same_file(source, candidates):
    fitted = fit_target(source, choices("attn_v=q8_0"), candidates, Target(bits_per_weight=6))
    recipe, *words = fitted.choices.spelt().split()
    types = [Override.parse(word.strip("'")) for word in words if word != "--type"]
    again = make_plan(source, Choices(recipe_named(recipe), tuple(types)))
    assert [t.target for t in again.tensors] == [t.target for t in fitted.plan.tensors]
    assert fitted.plan.metadata["halfbyte.recipe"] == fitted.choices.spelt()


def test_what_the_user_fixed_is_not_measured(source):
    found = measured_candidates(source, choices("attn=q8_0", keep_output=True), NearestCodes(), [TEXT])
    assert {name.split(".")[-2] for name in found} == {"ffn_gate", "ffn_up", "ffn_down", "token_embd"}


def test_a_target_too_small_names_the_least(source, candidates):
    with pytest.raises(ConfigError, match=r"takes at least \d+ bytes \(\d\.\d+ bits a weight\)"):
        fit_target(source, choices(), candidates, Target(file_bytes=50_000))


def test_a_tensor_nobody_reads_is_refused(source):
    with pytest.raises(ConfigError, match=r"'output\.weight' is not used by the model"):
        sensitivities(source, {}, ["output.weight"], NearestCodes())


def test_a_model_we_cannot_run_is_refused(tmp_path):
    path = make_tiny_gguf(tmp_path / "m.gguf", n_layers=1, metadata={"general.architecture": "unheard-of"})
    with open_gguf(path) as file, pytest.raises(UnsupportedError, match="unheard-of"):
        measured_candidates(file, choices(), NearestCodes())


@pytest.fixture
def uncompiled(monkeypatch):
    monkeypatch.setattr(quantizer, "CompiledSearch", lambda progress: NUMPY)
    monkeypatch.setattr(quantizer, "CompiledWalk", lambda progress: NUMPY_WALK)


def test_with_a_text_errors_make_up_for_each_other(source, tmp_path, uncompiled):
    wanted = choices()
    errors = {}
    for texts in ((), (TEXT,)):
        work = Quantizer(source, texts=texts, backend="reference")
        plan, _ = work.plan(wanted)
        work.write(plan, tmp_path / "new.gguf")
        with open_gguf(tmp_path / "new.gguf") as new:
            errors[bool(texts)] = error_of(source, new, "blk.0.ffn_up.weight")
    # What is best for the outputs is not what is nearest to the weights.
    assert errors[True] > errors[False]


def error_of(file, other, name):
    wanted, got = (f.tensors[name].format.decode(f.tensor_data(name)) for f in (file, other))
    return float(((got - wanted) ** 2).sum())


def test_a_plan_for_a_target_is_written(source, tmp_path, uncompiled):
    work = Quantizer(source, texts=[TEXT], backend="reference")
    plan, _ = work.plan(choices(), Target(file_bytes=100_000))
    work.write(plan, tmp_path / "new.gguf")
    assert (tmp_path / "new.gguf").stat().st_size == plan.file_bytes <= 100_000
