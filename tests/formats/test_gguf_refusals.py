"""Each refusal says what is wrong, in which file, at which byte, and what to do."""

from __future__ import annotations

import os

import numpy as np
import pytest

from halfbyte.errors import ConfigError, FormatError, UnsupportedError
from halfbyte.formats import open_gguf
from tests.formats.raw_gguf import RawGGUF, sound_file


def raw() -> RawGGUF:
    return RawGGUF()


def one_tensor(name=b"t", dims=(32,), kind=0, offset=0, tail=4096) -> bytes:
    return raw().head(1, 0).tensor(name, list(dims), kind, offset).pad(tail=tail)


def aligned_to(value: int, code: str = "I", kind: int = 4) -> bytes:
    return bytes(raw().head(0, 1).key(b"general.alignment", kind).number("alignment", code, value).data)


REFUSED = {
    "empty": (b"", "empty"),
    "other magic": (b"ABCD" + bytes(60), r"starts with b'ABCD'"),
    "shorter than the magic": (b"GG", "starts with b'GG'"),
    "web page": (b"<!DOCTYPE html><html>", "web page"),
    "lfs pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "git lfs pull"),
    "zip": (b"PK\x03\x04" + bytes(60), "zip archive"),
    "old kind": (b"tjgg\x03\0\0\0" + bytes(60), "GGJT"),
    "version 0": (bytes(raw().head(0, 0, version=0).data), "version 0 cannot be read"),
    "version 1": (bytes(raw().head(0, 0, version=1).data), "version 1 cannot be read.*current llama.cpp"),
    "version 4": (bytes(raw().head(0, 0, version=4).data), "version 4 .* newer"),
    "byte-swapped version": (bytes(raw().head(0, 0, version=3 << 24).data), "big-endian"),
    "empty key": (bytes(raw().head(0, 1).key(b"", 4).number("v", "I", 1).data), "key 0 is empty"),
    "key not utf-8": (bytes(raw().head(0, 1).key(b"\xff", 4).number("v", "I", 1).data), "not valid UTF-8"),
    "key twice": (
        bytes(raw().head(0, 2).key(b"k", 4).number("v", "I", 1).key(b"k", 4).number("v", "I", 1).data),
        "'k' occurs twice",
    ),
    "value type 13": (bytes(raw().head(0, 1).key(b"k", 13).number("v", "Q", 1).data), "'k' has value type 13"),
    "array of arrays": (raw().head(0, 1).array(b"k", 9, 1).pad(tail=64), "nested"),
    "array of type 13": (raw().head(0, 1).array(b"k", 13, 1).pad(tail=64), "type 13 does not exist"),
    "alignment 0": (aligned_to(0), "alignment is 0"),
    "alignment 3": (aligned_to(3), "alignment is 3"),
    "alignment 4": (aligned_to(4), "alignment is 4"),
    "alignment 48": (aligned_to(48), "alignment is 48"),
    "alignment u64": (aligned_to(32, "Q", 10), "not a single u32 but u64"),
    "alignment list": (
        bytes(raw().head(0, 1).array(b"general.alignment", 4, 1).number("v", "I", 32).data),
        "not a single u32",
    ),
    "tensor name of 64": (one_tensor(name=b"n" * 64), "64 bytes long, at most 63"),
    "tensor name empty": (one_tensor(name=b""), "name of tensor 0 is empty"),
    "tensor name not utf-8": (one_tensor(name=b"\xc3"), "not valid UTF-8"),
    "tensor twice": (
        raw().head(2, 0).tensor(b"t", [8], 0, 0).tensor(b"t", [8], 0, 32).pad(tail=64),
        "'t' occurs twice",
    ),
    "five dimensions": (one_tensor(dims=(1, 1, 1, 1, 1)), "5 dimensions, at most 4"),
    "dimension 0": (one_tensor(dims=(32, 0)), r"impossible shape \[32, 0\]"),
    "elements beyond 2^63": (one_tensor(dims=(2**32, 2**32)), "impossible shape"),
    "elements that wrap to few": (one_tensor(dims=(2**42 + 1, 2**22)), "impossible shape"),
    "bytes beyond 2^63": (one_tensor(dims=(2**62,)), "impossible size"),
    "row not divisible": (one_tensor(dims=(33,), kind=8), "rows of 33.*q8_0 blocks of 32"),
    "offset unaligned": (one_tensor(offset=8), "not at a multiple of 32"),
    "offset outside": (one_tensor(offset=2**64 - 32), "reach past the end"),
    "last byte missing": (one_tensor(tail=127), "1 of 1 tensors, 't' first, reach past the end"),
    "overlap": (raw().head(2, 0).tensor(b"a", [16], 0, 0).tensor(b"b", [8], 0, 32).pad(tail=64), "'a' and 'b' overlap"),
}


@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=REFUSED)
def test_a_damaged_file_is_named(tmp_path, content, message):
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=message) as caught:
        open_gguf(path)
    assert caught.value.path == str(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(("kind", "message"), [(31, "removed"), (9, "intermediate"), (99, "unknown"), (2**32 - 1, "")])
def test_a_tensor_type_we_do_not_know_is_named_with_the_known_ones(tmp_path, kind, message):
    path = tmp_path / "m.gguf"
    path.write_bytes(one_tensor(kind=kind))
    with pytest.raises(UnsupportedError, match=f"m.gguf: tensor 't': tensor type {kind}.*{message}") as caught:
        open_gguf(path)
    assert any(name.startswith("q4_k") for name in caught.value.known)
    assert str(caught.value).count("q4_k") == 1


def test_all_layout_problems_are_named_together(tmp_path):
    content = raw().head(3, 0).tensor(b"a", [16], 0, 0).tensor(b"b", [8], 0, 32).tensor(b"c", [8], 0, 100)
    (tmp_path / "m.gguf").write_bytes(content.pad(tail=200))
    with pytest.raises(FormatError, match=r"'c' starts at.*'a' and 'b' overlap"):
        open_gguf(tmp_path / "m.gguf")


def test_a_cut_download_says_how_much_is_missing(tmp_path):
    _, whole = sound_file()
    (tmp_path / "m.gguf").write_bytes(whole[:-50])
    with pytest.raises(FormatError, match=f"has {len(whole) - 50} bytes and needs {len(whole)}.*fetch it again"):
        open_gguf(tmp_path / "m.gguf")


@pytest.mark.parametrize(
    ("name", "message"), [("absent.gguf", "no such file"), ("", "is a folder"), ("a\0b", "not a path")]
)
def test_a_path_that_is_no_file_is_a_config_error(tmp_path, name, message):
    with pytest.raises(ConfigError, match=message):
        open_gguf(str(tmp_path) + "/" + name)


def test_a_name_longer_than_the_system_allows(tmp_path):
    with pytest.raises(ConfigError, match="cannot be opened"):
        open_gguf(tmp_path / ("n" * 5000))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_refused_without_waiting_for_its_writer(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="not a regular file"):
        open_gguf(tmp_path / "pipe")


def test_permission_denied(tmp_path, monkeypatch):
    path = tmp_path / "m.gguf"
    path.write_bytes(sound_file()[1])

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(path), "open", refuse)
    with pytest.raises(ConfigError, match="check its permissions"):
        open_gguf(path)


def test_limits_that_llama_cpp_allows_are_allowed(tmp_path):
    path = tmp_path / "m.gguf"
    content = raw().head(3, 1, version=2).array(b"none", 8, 0)
    content.tensor(b"n" * 63, [2, 2, 2, 2], 0, 64).tensor(b"scalar", [], 0, 0).tensor(b"gap", [1, 3], 0, 256)
    path.write_bytes(content.pad(tail=256 + 12))
    with open_gguf(path) as file:
        assert file.version == 2
        assert file.metadata["none"].tolist() == []
        assert file.tensors["n" * 63].rows == 8
        assert file.tensors["scalar"].shape == (1,)
        assert file.tensor_data("gap").shape == (3, 4)


def test_bools_that_are_neither_0_nor_1_are_true(tmp_path):
    path = tmp_path / "m.gguf"
    content = raw().head(0, 2).key(b"one", 7).number("v", "B", 2).array(b"many", 7, 2)
    path.write_bytes(bytes(content.number("v", "B", 0).number("v", "B", 255).data))
    with open_gguf(path) as file:
        assert file.metadata["one"] is True
        assert file.metadata["many"].view(np.uint8).tolist() == [0, 1]
