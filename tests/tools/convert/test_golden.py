"""A converted file says what it answers, in one part or several; where that fails there is no file."""

from __future__ import annotations

import pytest

import halfbyte
from halfbyte.formats import open_gguf
from halfbyte.runtime.golden.vectors import read
from halfbyte.tools.convert import conversion
from halfbyte.tools.convert.conversion import Conversion, ConversionChoices
from tests.tools.convert import tiny_llama


@pytest.fixture
def folder(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    return tiny_llama.save(source)


def convert(folder, out, **choices):
    return Conversion(folder, ConversionChoices(**choices)).write(out).paths


@pytest.mark.parametrize("split_bytes", [None, 100_000])
def test_a_converted_file_passes_its_check(folder, tmp_path, split_bytes):
    paths = convert(folder, tmp_path / "new.gguf", type="f16", split_bytes=split_bytes)
    assert (len(paths) > 1) == (split_bytes is not None)
    with open_gguf(paths[0]) as file:
        assert len(read(file).tensors) == len(file.tensors)
    with halfbyte.load(paths[0], check=True, backend="reference") as llm:
        assert llm.tokenize("Hello")


def test_a_file_without_weights_has_no_golden_vectors(folder, tmp_path):
    (path,) = convert(folder, tmp_path / "new.gguf", vocab_only=True)
    with open_gguf(path) as file:
        assert not any(key.startswith("halfbyte.check.") for key in file.metadata)


@pytest.mark.parametrize("split_bytes", [None, 100_000])
def test_failing_while_recording_leaves_no_part_behind(folder, tmp_path, monkeypatch, split_bytes):
    def fail(writer, progress):
        with writer.look():
            raise KeyboardInterrupt

    monkeypatch.setattr(conversion, "record", fail)
    with pytest.raises(KeyboardInterrupt):
        convert(folder, tmp_path / "new.gguf", split_bytes=split_bytes)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]
