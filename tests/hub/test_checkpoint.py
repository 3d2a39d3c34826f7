"""Checkpoints in a repository: what of it is fetched, and what they are called."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from halfbyte.errors import ConfigError
from halfbyte.formats import open_gguf
from halfbyte.hub.checkpoint import repository_of, resolve_checkpoint
from tests.hub.fake_hub import fake_hub
from tests.tools.convert import tiny_llama

EXTRA = {
    "README.md": b"text",
    "pytorch_model.bin": b"the same weights once more",
    "onnx/model.onnx": b"others still",
    "1_Pooling/config.json": b"{}",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tiny_llama.save(tmp_path_factory.mktemp("tiny"), shards=2)
    return EXTRA | {path.name: path.read_bytes() for path in folder.iterdir()}


def halfbyte(tmp_path: Path, endpoint: str, *words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(tmp_path / "hf"),
        "HALFBYTE_CACHE": str(tmp_path / "cache"),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "NO_PROXY": "127.0.0.1",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, "-m", "halfbyte", *words]
    return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60)


def test_a_repository_becomes_a_file_of_its_name(tmp_path: Path, files: dict[str, bytes]) -> None:
    with fake_hub({"owner/tiny-llama": files}) as (endpoint, asked):
        first = halfbyte(tmp_path, endpoint, "convert", "hf:owner/tiny-llama")
        assert (first.returncode, first.stdout) == (0, "tiny-llama-f16.gguf\n"), first.stderr
        fetched = {path.partition("/resolve/")[2].partition("/")[2] for path in asked if "/resolve/" in path}
        assert fetched == files.keys() - {"README.md", "pytorch_model.bin", "onnx/model.onnx"}
        asked.clear()
        again = halfbyte(tmp_path, endpoint, "convert", "hf:owner/tiny-llama", "-o", "again.gguf")
        assert (again.returncode, asked) == (0, [])
    with open_gguf(tmp_path / "tiny-llama-f16.gguf") as file:
        assert file.metadata["general.name"] == "tiny llama"
    assert (tmp_path / "again.gguf").read_bytes() == (tmp_path / "tiny-llama-f16.gguf").read_bytes()


@pytest.mark.parametrize("lacking", [".json", ".safetensors"])
def test_a_repository_without_a_checkpoint_is_said_to_be_none(tmp_path: Path, files, lacking: str) -> None:
    rest = {name: data for name, data in files.items() if not name.endswith((lacking, ".bin"))}
    with fake_hub({"owner/other": rest}) as (endpoint, _):
        done = halfbyte(tmp_path, endpoint, "convert", "hf:owner/other")
    assert done.returncode == 1
    assert "it is no checkpoint that can be converted" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("*.gguf"))


def test_an_adapter_is_fetched_as_one() -> None:
    import halfbyte.hub.checkpoint as hub

    names = ["adapter_config.json", "adapter_model.safetensors", "README.md", "tokenizer.json", "optimizer.pt"]
    assert hub._choose("a/b", names) == ["adapter_config.json", "tokenizer.json", "adapter_model.safetensors"]


def test_paths_are_paths_and_names_are_names(tmp_path: Path) -> None:
    assert resolve_checkpoint(tmp_path) == tmp_path
    assert resolve_checkpoint("some/folder") == Path("some/folder")
    assert repository_of("hf:Qwen/Qwen3-0.6B") == "Qwen3-0.6B"
    assert repository_of("Qwen/Qwen3-0.6B") is None
    with pytest.raises(ConfigError, match="a whole repository"):
        resolve_checkpoint("hf:a/b:q4_0")
