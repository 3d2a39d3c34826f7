"""A model written into parts is the model written into one file."""

import gguf
import numpy as np
import pytest

from halfbyte.errors import ConfigError, ResourceError
from halfbyte.formats import Reserved, open_gguf
from halfbyte.formats.new_file import NewFile
from halfbyte.formats.split_writer import SplitWriter
from halfbyte.quant import FORMATS

F32 = FORMATS["f32"]
TENSORS = {f"t{i}": np.full((4, 32), i, np.float32) for i in range(5)}
BYTES = 4 * 32 * 4
METADATA = {"general.architecture": "llama", "general.name": "parts", "list": Reserved("u32", 3)}


def write(path, part_bytes, fill=True):
    with SplitWriter(path, METADATA, part_bytes) as writer:
        for name, values in TENSORS.items():
            writer.declare(name, F32, values.shape[::-1])
        for name, values in reversed(TENSORS.items()):
            writer.write(name, values)
        with writer.look() as file:
            assert list(file.tensors) == list(TENSORS)
        if fill:
            writer.fill("list", [1, 2, 3])
        return writer.paths


@pytest.mark.parametrize(("part_bytes", "parts"), [(None, 1), (5 * BYTES, 1), (2 * BYTES, 3), (BYTES, 5), (1, 5)])
def test_parts_hold_what_one_file_does(tmp_path, part_bytes, parts):
    paths = write(tmp_path / "model.gguf", part_bytes)
    assert len(paths) == parts
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    for path in paths:
        with open_gguf(path) as file:
            assert file.metadata["general.name"] == "parts"
            assert list(file.metadata["list"]) == [1, 2, 3]
            for name, values in TENSORS.items():
                assert np.array_equal(file.tensor_data(name), values.view(np.uint8))


def test_another_reader_finds_the_parts_as_they_should_be(tmp_path):
    paths = write(tmp_path / "model.gguf", 2 * BYTES)
    assert [path.name for path in paths] == [f"model-0000{i}-of-00003.gguf" for i in (1, 2, 3)]
    readers = [gguf.GGUFReader(path) for path in paths]
    assert [reader.fields["split.no"].contents() for reader in readers] == [0, 1, 2]
    assert {reader.fields["split.count"].contents() for reader in readers} == {3}
    assert {reader.fields["split.tensors.count"].contents() for reader in readers} == {5}
    assert [len(reader.tensors) for reader in readers] == [2, 2, 1]


def test_nothing_is_left_of_parts_that_could_not_all_be_written(tmp_path):
    with pytest.raises(ConfigError, match="not filled: list"):
        write(tmp_path / "model.gguf", BYTES, fill=False)
    assert list(tmp_path.iterdir()) == []


def test_parts_that_have_their_names_go_too_when_a_later_one_fails(tmp_path, monkeypatch):
    commit, calls = NewFile.commit, []

    def fail_at_the_third(file):
        calls.append(file)
        if len(calls) == 3:
            raise ResourceError("the disk is full")
        commit(file)

    monkeypatch.setattr(NewFile, "commit", fail_at_the_third)
    with pytest.raises(ResourceError):
        write(tmp_path / "model.gguf", BYTES)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="hold nothing"):
        SplitWriter(tmp_path / "model.gguf", {}, 0)
    writer = SplitWriter(tmp_path / "model.gguf", {}, 1)
    writer.declare("a", F32, (32,))
    with pytest.raises(ConfigError, match="declared twice"):
        writer.declare("a", F32, (32,))
    with pytest.raises(ConfigError, match="was not declared"):
        writer.write("b", np.zeros(32, np.float32))
    with pytest.raises(ConfigError, match="too late"):
        writer.declare("c", F32, (32,))
    writer.discard()
