"""`GGUFWriter` leaves a whole file or none, and says what it was not given."""

from __future__ import annotations

import errno
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from halfbyte.errors import ConfigError, ResourceError
from halfbyte.formats import GGUFWriter, Typed, open_gguf
from halfbyte.formats import new_file as module
from halfbyte.quant.formats import FORMATS

F32 = FORMATS["f32"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.gguf"


def names(path) -> list[str]:
    return sorted(entry.name for entry in path.parent.iterdir())


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_leaving_by_an_exception_leaves_nothing(path, error):
    with pytest.raises(error), GGUFWriter(path, {}) as writer:  # noqa: PT012
        writer.declare("t", F32, (8,))
        writer.write("t", bytes(8))
        assert len(names(path)) == 1
        raise error
    assert names(path) == []


def test_the_old_file_stays_until_the_new_one_is_whole(path):
    path.write_bytes(b"old")
    with GGUFWriter(path, {"k": 1}) as writer:
        writer.declare("t", F32, (8,))
        writer.write("t", bytes(32))
        assert path.read_bytes() == b"old"
    assert names(path) == ["m.gguf"]
    with open_gguf(path) as file:
        assert file.metadata["k"] == 1


def test_incomplete_tensors_are_named_and_nothing_is_left(path):
    with pytest.raises(ConfigError, match=r"incomplete: half, none"), GGUFWriter(path, {}) as writer:  # noqa: PT012
        for name in ("whole", "half", "none"):
            writer.declare(name, F32, (8,))
        writer.write("whole", np.zeros(8, np.float32))
        writer.write("half", np.zeros(4, np.float32))
    assert names(path) == []


def test_misuse_is_refused(path):
    with GGUFWriter(path, {}) as writer:
        writer.declare("blk.0.weight", F32, (2, 2))
        with pytest.raises(ConfigError, match="declared twice"):
            writer.declare("blk.0.weight", F32, (8,))
        with pytest.raises(ConfigError, match=r"did you mean 'blk\.0\.weight'"):
            writer.write("blk.0.wieght", bytes(8))
        with pytest.raises(ConfigError, match="lacks 16 of 16 bytes, 17 were given"):
            writer.write("blk.0.weight", bytes(17))
        writer.write("blk.0.weight", np.eye(2, dtype=np.float32).T)
        with pytest.raises(ConfigError, match="too late"):
            writer.declare("later", F32, (8,))
    with pytest.raises(ConfigError, match="finished"):
        writer.write("blk.0.weight", b"")
    writer.close()
    with open_gguf(path) as file:
        assert file.tensor_data("blk.0.weight").view(np.float32).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("", (8,)),
        ("n" * 64, (8,)),
        ("\udc80", (8,)),
        ("t", ()),
        ("t", (1, 1, 1, 1, 1)),
        ("t", (8, 0)),
        ("t", (-8,)),
        ("t", (2**32, 2**32)),
    ],
)
def test_tensors_no_reader_would_take_are_refused(path, name, shape):
    with pytest.raises(ConfigError, match="tensor"):
        GGUFWriter(path, {}).declare(name, F32, shape)


def test_rows_that_do_not_divide_are_refused(path):
    with pytest.raises(ConfigError, match=r"'t': rows of 33"):
        GGUFWriter(path, {}).declare("t", FORMATS["q8_0"], (33, 2))


@pytest.mark.parametrize("alignment", [0, 4, 48, -32, 2**32])
def test_alignments_no_reader_would_take_are_refused(path, alignment):
    with pytest.raises(ConfigError, match="alignment"):
        GGUFWriter(path, {}, alignment)


def test_an_alignment_key_must_agree(path):
    with pytest.raises(ConfigError, match=r"general\.alignment"):
        GGUFWriter(path, {"general.alignment": 64})
    with GGUFWriter(path, {"general.alignment": Typed(64, "u32"), "k": 1}, 64):
        pass
    with open_gguf(path) as file:
        assert (file.alignment, dict(file.metadata)) == (64, {"k": 1, "general.alignment": 64})


def test_a_missing_folder_is_a_config_error(path):
    with pytest.raises(ConfigError, match="cannot be written"), GGUFWriter(path.parent / "none" / "m.gguf", {}):
        pass


def test_too_little_disk_is_known_before_the_first_byte(path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 90, 10))
    with pytest.raises(ResourceError, match=r"free") as caught, GGUFWriter(path, {}) as writer:  # noqa: PT012
        writer.declare("t", F32, (8,))
        writer.write("t", bytes(32))
    assert caught.value.needed > 32
    assert caught.value.free == 10
    assert names(path) == []


@pytest.mark.parametrize("moment", ["write", "fsync"])
def test_a_disk_that_fills_up_names_needed_and_free_bytes(path, monkeypatch, moment):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(ResourceError, match="bytes needed") as caught, GGUFWriter(path, {}) as writer:  # noqa: PT012
        writer.declare("t", F32, (8,))
        writer.write("t", bytes(16))
        if moment == "write":
            file = writer._file._file
            monkeypatch.setattr(writer._file, "_file", SimpleNamespace(seek=file.seek, write=full, close=file.close))
        else:
            monkeypatch.setattr(module.os, "fsync", full)
        writer.write("t", bytes(16))
    assert caught.value.needed is not None
    assert caught.value.free > 0
    assert names(path) == []
