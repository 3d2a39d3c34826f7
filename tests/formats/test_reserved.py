"""Metadata that depend on the tensors: reserved, filled when the tensors are there, and never left empty."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from halfbyte.errors import ConfigError
from halfbyte.formats import GGUFFile, GGUFWriter, Reserved, Typed, open_gguf
from halfbyte.quant.formats import FORMATS

F32 = FORMATS["f32"]
PAIRS = {"before": "text", "sums": Reserved("f32", 2), "between": Typed(3, "u8"), "ids": Reserved("i64", 3), "after": 7}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.gguf"


def written(path, pairs=PAIRS):
    writer = GGUFWriter(path, pairs)
    writer.declare("t", F32, (4, 2))
    writer.write("t", np.arange(8, dtype=np.float32))
    return writer


def names(path):
    return sorted(entry.name for entry in path.parent.iterdir())


def test_values_that_depend_on_the_tensors_stand_where_they_were_reserved(path):
    with written(path) as writer:
        with writer.look() as file:
            assert file.metadata["sums"].tolist() == [0, 0]
            sums = file.tensor_data("t").view(np.float32).sum(axis=1)
        writer.fill("ids", [1, -2, 2**40])
        writer.fill("sums", sums)
    with open_gguf(path) as file:
        assert {key: getattr(value, "tolist", lambda v=value: v)() for key, value in file.metadata.items()} == {
            "before": "text",
            "sums": [6.0, 22.0],
            "between": 3,
            "ids": [1, -2, 2**40],
            "after": 7,
        }
        assert (file.types["sums"], file.types["ids"]) == ("f32", "i64")
        assert file.tensor_data("t").view(np.float32).ravel().tolist() == list(range(8))
    assert names(path) == ["m.gguf"]


def test_what_is_looked_at_is_what_is_there_afterwards(path):
    with written(path, {}) as writer, writer.look() as file:
        assert file.path == path
        assert not path.exists()
        seen = file.tensor_data("t").tobytes()
    assert open_gguf(path).tensor_data("t").tobytes() == seen


def test_parts_of_a_split_model_are_looked_at_together(tmp_path):
    writers = [GGUFWriter(tmp_path / f"m-{i}.gguf", {"sums": Reserved("f32", 1)} if i == 0 else {}) for i in range(2)]
    for writer, name in zip(writers, "ab", strict=True):
        writer.declare(name, F32, (4,))
        writer.write(name, np.ones(4, np.float32))
    with GGUFFile([writer.part() for writer in writers]) as file:
        writers[0].fill("sums", [sum(file.tensor_data(name).view(np.float32).sum() for name in "ab").item()])
    for writer in writers:
        writer.close()
    assert open_gguf(tmp_path / "m-0.gguf").metadata["sums"].tolist() == [8]


def test_a_file_whose_reserved_values_are_missing_is_not_left_behind(path):
    writer = written(path)
    writer.fill("ids", [1, 2, 3])
    with pytest.raises(ConfigError, match="not filled: sums"):
        writer.close()
    assert names(path) == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_failing_while_filling_leaves_nothing_behind(path, error):
    with pytest.raises(error), written(path) as writer:  # noqa: PT012
        writer.fill("ids", [1, 2, 3])
        with writer.look():
            raise error
    assert names(path) == []


def test_values_that_do_not_fit_are_refused(path):
    writer = written(path)
    with pytest.raises(ConfigError, match="2 values are given for 3"):
        writer.fill("ids", [1, 2])
    with pytest.raises(ConfigError, match=r"1\.5 is not a i64"):
        writer.fill("ids", [1, 1.5, 2])
    with pytest.raises(ConfigError, match="not reserved; did you mean 'sums'"):
        writer.fill("sum", [1])
    with pytest.raises(ConfigError, match="not reserved"):
        writer.fill("before", ["text"])
    writer.discard()
    with pytest.raises(ConfigError, match="finished already"):
        writer.fill("ids", [1, 2, 3])
    with pytest.raises(ConfigError, match="it is finished"):
        writer.look()


def test_incomplete_tensors_cannot_be_looked_at(path):
    writer = GGUFWriter(path, {})
    writer.declare("t", F32, (8,))
    with pytest.raises(ConfigError, match="incomplete: t"):
        writer.look()
    writer.discard()
    assert names(path) == []


def test_sums_are_of_the_bytes_written(path):
    with GGUFWriter(path, {}) as writer:
        writer.declare("t", F32, (4, 2))
        for start in (0, 4):
            writer.write("t", np.arange(start, start + 4, dtype=np.float32))
        sums = writer.sums
    assert sums == {"t": zlib.crc32(open_gguf(path).tensor_data("t").tobytes())}
