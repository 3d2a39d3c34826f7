"""A file that changes while somebody works on it."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import pytest

from halfbyte.errors import FormatError
from halfbyte.formats import GGUFFile, gguf_file, open_gguf
from tests.model.tiny import make_tiny_gguf

NAME = "blk.0.ffn_down.weight"


@pytest.fixture
def file(tmp_path: Path):
    with open_gguf(make_tiny_gguf(tmp_path / "model.gguf", n_layers=1, weights="q8_0")) as file:
        yield file


def test_rows_read_are_those_that_are_mapped(file: GGUFFile) -> None:
    for name, info in file.tensors.items():
        whole = file.tensor_data(name)
        assert np.array_equal(file.read_rows(name, 0, info.rows), whole)
        assert np.array_equal(file.read_rows(name, info.rows // 2, info.rows), whole[info.rows // 2 :])
        assert file.read_rows(name, 1, 1).shape == (0, whole.shape[1])


@pytest.mark.skipif(not hasattr(os, "preadv"), reason="this system cuts no file that is mapped")
def test_rows_cut_off_after_the_look_at_the_size_are_refused(file: GGUFFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_file, "_check_whole", lambda parts: None)
    os.truncate(file.path, file.tensors[NAME].offset + 100)
    with pytest.raises(FormatError, match="become shorter"):
        file.read_rows(NAME, 0, file.tensors[NAME].rows)


@pytest.mark.skipif(os.name == "nt", reason="a mapped file cannot be replaced there")
def test_a_file_replaced_meanwhile_is_read_as_it_was_opened(file: GGUFFile, tmp_path: Path) -> None:
    before = file.tensor_data(NAME).copy()
    make_tiny_gguf(tmp_path / "other.gguf", n_layers=1, weights="q4_0", seed=1).replace(file.path)
    assert np.array_equal(file.read_rows(NAME, 0, file.tensors[NAME].rows), before)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are counted there")
def test_a_closed_file_holds_no_descriptor(tmp_path: Path) -> None:
    path = make_tiny_gguf(tmp_path / "model.gguf", n_layers=1)
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        open_gguf(path).close()
    assert len(os.listdir("/proc/self/fd")) == before
