from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from halfbyte.errors import ConfigError, FormatError
from halfbyte.hub import NAMES, cache_folder, resolve, verify
from halfbyte.hub.folder import folder_name
from halfbyte.hub.huggingface import parse_reference
from halfbyte.hub.pypi import parse_packages


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF rest")
    return path


def test_a_path_is_itself_as_text_and_as_path(model: Path) -> None:
    assert resolve(str(model)) == resolve(model) == model


def test_a_home_folder_mark_is_expanded(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(model.parent))
    monkeypatch.setenv("USERPROFILE", str(model.parent))
    assert resolve("~/model.gguf") == model


def test_a_file_goes_before_a_short_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("smollm2-135m").write_bytes(b"GGUF")
    assert resolve("smollm2-135m") == Path("smollm2-135m")


@pytest.mark.parametrize(
    ("reference", "hint"),
    [
        ("smollm-135m", "did you mean 'smollm2-135m'"),
        ("qwen2.5-coder-0.5", "did you mean 'qwen2.5-coder-0.5b'"),
        ("something else", "short names: smollm2-135m, gemma3-270m"),
        ("owner/model-GGUF", "write hf:owner/model-GGUF"),
        ("./nothing.gguf", "there is no file nothing.gguf"),
    ],
)
def test_a_reference_to_nothing_says_what_was_meant(reference: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(reference)
    assert hint in str(caught.value)


def test_a_misspelt_file_name_shows_its_neighbour(model: Path) -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'model\.gguf'"):
        resolve(model.with_name("modle.gguf"))


def test_a_folder_lists_the_models_in_it(model: Path) -> None:
    with pytest.raises(ConfigError, match=r"is a folder; it holds model\.gguf"):
        resolve(model.parent)


@pytest.mark.parametrize("config", ["config.json", "adapter_config.json"])
def test_a_folder_of_transformers_is_to_be_converted_first(tmp_path, config):
    (tmp_path / config).write_text("{}")
    with pytest.raises(ConfigError, match="halfbyte convert"):
        resolve(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    pipe = tmp_path / "model.gguf"
    os.mkfifo(pipe)
    with pytest.raises(ConfigError, match="device or a pipe"):
        resolve(pipe)


@pytest.mark.parametrize(
    "text", ["x" * 5000, "y/" + "x" * 300 + ".gguf", "~no-such-user-here/model.gguf", "a\0b", "a\0b.gguf"]
)
def test_names_that_no_file_can_have(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(text)
    assert text in str(caught.value) or repr(text) in str(caught.value)


def test_a_link_to_itself_is_no_file(tmp_path: Path) -> None:
    loop = tmp_path / "model.gguf"
    loop.symlink_to(loop)
    with pytest.raises(ConfigError, match=r"model\.gguf"):
        resolve(loop)


@pytest.mark.parametrize("place", ["model.gguf", "model.gguf/inside.gguf"])
def test_what_may_not_be_read_is_said(model: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open" if place == model.name else "stat", refuse)
    with pytest.raises(ConfigError, match=r"model\.gguf.*Permission denied"):
        resolve(str(model.parent / place))


@pytest.mark.parametrize(
    ("name", "data", "hint"),
    [
        ("model.safetensors", b"\x08\0\0\0\0\0\0\0{}", "look for the same model as a .gguf"),
        ("model.gguf", b"", "is empty"),
        ("model.gguf", b"PK\x03\x04", "not a GGUF file"),
    ],
)
def test_other_files_are_refused_by_their_first_bytes(tmp_path: Path, name: str, data: bytes, hint: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(FormatError, match=hint) as caught:
        resolve(path)
    assert caught.value.path == str(path)


@pytest.mark.parametrize("text", ["", "a b", "--index-url=x", "-r", "a,", "a==", "git+x", "./a", "a;b", "a[extra]"])
def test_only_package_names_reach_pip(text: str) -> None:
    with pytest.raises(ConfigError, match="not a package name"):
        parse_packages(text)


def test_packages_may_name_a_version() -> None:
    assert parse_packages("a-b.c==1.0, d") == ("a-b.c==1.0", "d")


@pytest.mark.parametrize("text", ["", "owner", "owner/", "owner/repo:", "owner/repo/file", "http://x/y"])
def test_a_repository_needs_owner_and_name(text: str) -> None:
    with pytest.raises(ConfigError, match="write hf:OWNER/REPO"):
        parse_reference(text)


def test_an_own_file_has_no_hash_to_compare(model: Path) -> None:
    with pytest.raises(ConfigError, match="your own file"):
        verify(model)


def test_short_names_pin_versions_and_hashes() -> None:
    for name, model in NAMES.items():
        assert name == folder_name(name)
        assert all("==" in package for package in parse_packages(",".join(model.packages)))
        assert len(bytes.fromhex(model.sha256)) == 32
        assert model.file.endswith(".gguf")
        assert 0 < model.download_size <= model.size


def test_folder_names_differ_where_references_do() -> None:
    references = ["hf:a/b", "hf:A/b", "hf:a/b:q8_0", "pypi:a,b", "pypi:a-b", "x" * 200, "x" * 201]
    names = [folder_name(reference) for reference in references]
    assert len({name.lower() for name in names}) == len(references)
    assert all(os.path.basename(name) == name and len(name) < 100 for name in names)


def test_the_cache_moves_with_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALFBYTE_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("HALFBYTE_CACHE")
    assert cache_folder().name == "halfbyte"
