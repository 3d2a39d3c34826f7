"""Tensor data is a read-only view of the mapped file that outlives the `GGUFFile`."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from halfbyte.errors import ConfigError, FormatError
from halfbyte.formats import GGUFWriter, open_gguf
from halfbyte.quant.formats import FORMATS


@pytest.fixture
def path(tmp_path):
    with GGUFWriter(tmp_path / "m.gguf", {"tokens": ["a", "b"]}) as writer:
        writer.declare("blk.0.weight", FORMATS["q8_0"], (64, 2, 5))
        writer.write("blk.0.weight", np.arange(680, dtype=np.uint8))
    return tmp_path / "m.gguf"


def test_views_have_a_row_a_line_and_are_not_copies(path):
    with open_gguf(path) as file:
        data = file.tensor_data("blk.0.weight")
        assert data.shape == (10, 68)
        assert data[3, 1] == (3 * 68 + 1) % 256
        assert np.shares_memory(data, file.tensor_data("blk.0.weight"))
        with pytest.raises(ValueError, match="read-only"):
            data[0, 0] = 1


def test_views_and_strings_outlive_the_file(path):
    with open_gguf(path) as file:
        data, tokens = file.tensor_data("blk.0.weight"), file.metadata["tokens"]
    file.close()
    del file
    gc.collect()
    assert data[9, 67] == 679 % 256
    assert tokens.tolist() == ["a", "b"]


def test_a_closed_file_refuses_new_views(path):
    file = open_gguf(path)
    file.close()
    file.close()
    with pytest.raises(ConfigError, match="closed"):
        file.tensor_data("blk.0.weight")


def test_a_missing_tensor_names_the_nearest(path):
    with (
        open_gguf(path) as file,
        pytest.raises(FormatError, match=r"no tensor 'blk.0.wieght'; did you mean 'blk.0.weigh"),
    ):
        file.tensor_data("blk.0.wieght")


def test_a_file_cut_after_it_was_opened_is_refused_instead_of_read(path):
    with open_gguf(path) as file:
        with path.open("r+b") as other:
            other.truncate(100)
        with pytest.raises(FormatError, match="become shorter"):
            file.tensor_data("blk.0.weight")
