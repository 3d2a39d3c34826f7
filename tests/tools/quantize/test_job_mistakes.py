"""Weights that a format has no number for are refused by name, and leave nothing behind."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.errors import ConfigError, FormatError
from halfbyte.formats import open_gguf
from halfbyte.quant.recipes import recipe_named
from halfbyte.tools.quantize.choices import Choices
from halfbyte.tools.quantize.encoding import NearestCodes
from halfbyte.tools.quantize.imatrix import ImportanceMatrix
from halfbyte.tools.quantize.imatrix_entry import Entry, problem_of
from halfbyte.tools.quantize.imatrix_file import write_imatrix
from halfbyte.tools.quantize.imatrix_fit import check_fits
from halfbyte.tools.quantize.job import quantize
from halfbyte.tools.quantize.plan import make_plan
from tests.model.tiny import make_tiny_gguf

NAME = "blk.0.ffn_up.weight"


def entry(total, count, experts=1, columns=64):
    return Entry(np.full((experts, columns), total, np.float32), np.full(experts, count, np.float32))


@pytest.mark.parametrize(
    ("recipe", "weight", "hint"),
    [
        ("f16", 1e5, "beyond what f16 can hold: keep the tensor in bf16 or f32"),
        ("f16", -65520, "beyond what f16 can hold"),
        ("bf16", 3.4e38, "beyond what bf16 can hold: keep the tensor in f32"),
        ("nvfp4", 3000, "nvfp4 cannot hold 3000.0"),
        ("q8_0", 1e38, "q8_0 cannot hold"),
    ],
)
def test_a_weight_too_large_for_the_new_format_is_named(tmp_path, recipe, weight, hint):
    weights = np.zeros((128, 64), np.float32)
    weights[3, 5] = weight
    file = open_gguf(make_tiny_gguf(tmp_path / "source.gguf", n_layers=1, tensors={NAME: weights}))
    plan = make_plan(file, Choices(recipe_named(recipe), pure=True))
    with pytest.raises(ConfigError) as caught:
        quantize(file, plan, tmp_path / "new.gguf", [(each, NearestCodes()) for each in plan.tensors])
    assert f"tensor {NAME!r}" in str(caught.value)
    assert hint in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["source.gguf"]


def test_the_largest_weight_of_half_precision_is_not_refused(tmp_path):
    weights = np.full((128, 64), 65504, np.float32)
    file = open_gguf(make_tiny_gguf(tmp_path / "source.gguf", n_layers=1, tensors={NAME: weights}))
    plan = make_plan(file, Choices(recipe_named("f16")))
    quantize(file, plan, tmp_path / "new.gguf", [(each, NearestCodes()) for each in plan.tensors])
    assert (open_gguf(tmp_path / "new.gguf").tensor_data(NAME).view("<f2") == 65504).all()


def test_means_beyond_float32_are_no_importance(tmp_path):
    assert problem_of(entry(3e38, 1e-9)) == "has sums too large for its counts"
    assert problem_of(entry(3e38, 0)) == ""
    sums = ImportanceMatrix({NAME: entry(3e38, 1)}, chunk_size=512)
    with pytest.raises(ConfigError, match="cannot be written"):
        write_imatrix(sums.merge(sums), tmp_path / "i.gguf")
    assert list(tmp_path.iterdir()) == []


def test_an_importance_matrix_may_know_more_than_the_file_but_not_otherwise(tmp_path):
    file = open_gguf(make_tiny_gguf(tmp_path / "source.gguf", n_layers=1))
    check_fits(ImportanceMatrix({NAME: entry(1, 1), "blk.9.ffn_up.weight": entry(1, 1, columns=32)}), file)
    for wrong in ({}, {"other": entry(1, 1)}, {NAME: entry(1, 1, experts=2)}, {NAME: entry(1, 1, columns=65)}):
        with pytest.raises(FormatError, match="another model's"):
            check_fits(ImportanceMatrix(wrong), file)
