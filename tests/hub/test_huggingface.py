"""Fetching from a Hugging Face repository: the real client in a process of its own, a local endpoint."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from halfbyte.errors import ConfigError
from halfbyte.hub.gguf_name import choose
from tests.hub.fake_hub import fake_hub
from tests.hub.wheels import BODY

FILES = {
    "README.md": b"text",
    "model-Q4_K_M.gguf": BODY + b"4",
    "model-Q8_0.gguf": BODY + b"8",
    "big/big-f16-00001-of-00002.gguf": BODY + b"one",
    "big/big-f16-00002-of-00002.gguf": BODY + b"two",
}
REPOSITORIES = {"owner/model-GGUF": FILES, "owner/empty": {"README.md": b"text"}}


@pytest.fixture
def pull(tmp_path: Path):
    """Run `halfbyte pull` against an endpoint, as a person would."""

    def run(endpoint: str, *words: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {
            "HF_ENDPOINT": endpoint,
            "HF_HOME": str(tmp_path / "hf"),
            "HALFBYTE_CACHE": str(tmp_path / "cache"),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "NO_PROXY": "127.0.0.1",
        }
        command = [sys.executable, "-m", "halfbyte", "pull", *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    return run


def test_a_quantization_is_fetched_and_kept(pull) -> None:
    with fake_hub(REPOSITORIES) as (endpoint, asked):
        first = pull(endpoint, "hf:owner/model-GGUF:q8_0")
        assert first.returncode == 0
        asked.clear()
        again = pull(endpoint, "hf:owner/model-GGUF:q8_0")
        assert asked == []
    path = Path(first.stdout.strip())
    assert again.stdout == first.stdout
    assert path.name == "model-Q8_0.gguf"
    assert path.read_bytes() == FILES["model-Q8_0.gguf"]
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["manifest.json", "model-Q8_0.gguf"]


def test_all_parts_of_a_split_model_come(pull) -> None:
    with fake_hub(REPOSITORIES) as (endpoint, _):
        done = pull(endpoint, "hf:owner/model-GGUF:f16")
    path = Path(done.stdout.strip())
    assert path.name == "big-f16-00001-of-00002.gguf"
    assert path.with_name("big-f16-00002-of-00002.gguf").read_bytes() == BODY + b"two"


@pytest.mark.parametrize(
    ("reference", "hint"),
    [
        ("hf:owner/nothing", "there is no repository owner/nothing"),
        ("hf:owner/empty", "holds no .gguf file"),
        ("hf:owner/model-GGUF:q9_9", "it has: big/big-f16.gguf, model-Q4_K_M.gguf, model-Q8_0.gguf"),
    ],
)
def test_what_is_not_there_is_one_line(pull, reference: str, hint: str) -> None:
    with fake_hub(REPOSITORIES) as (endpoint, _):
        done = pull(endpoint, reference)
    assert (done.returncode, done.stdout) == (1, "")
    assert hint in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_file_cut_short_is_thrown_away(pull, tmp_path: Path) -> None:
    with fake_hub(REPOSITORIES, sizes={"model-Q8_0.gguf": 10**6}) as (endpoint, _):
        done = pull(endpoint, "hf:owner/model-GGUF:q8_0")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert not list((tmp_path / "cache").rglob("*.gguf"))


def test_no_endpoint_is_one_line(pull) -> None:
    done = pull("http://127.0.0.1:9", "hf:owner/model-GGUF")
    assert done.returncode == 1
    assert "check the network, HF_ENDPOINT" in done.stderr
    assert done.stderr.count("\n") == 1


NAMES = ["m-Q2_K.gguf", "m-Q4_K_M.gguf", "m-Q4_K_S.gguf", "m-f16.gguf", "mmproj-f16.gguf", "m.imatrix.gguf"]


@pytest.mark.parametrize(
    ("names", "wanted", "chosen"),
    [
        (NAMES, "", ["m-Q4_K_M.gguf"]),
        (NAMES, "Q4_k_s", ["m-Q4_K_S.gguf"]),
        (NAMES, "f16", ["m-f16.gguf"]),
        (NAMES, "m-q2_k.GGUF", ["m-Q2_K.gguf"]),
        (["odd.gguf", "x.bin"], "", ["odd.gguf"]),
        (["a-00002-of-00002.gguf", "a-00001-of-00002.gguf"], "", ["a-00001-of-00002.gguf", "a-00002-of-00002.gguf"]),
        (["d/m.Q8_0.gguf", "../../m-q4_k_m.gguf"], "", ["d/m.Q8_0.gguf"]),
    ],
)
def test_the_file_meant_is_chosen(names: list[str], wanted: str, chosen: list[str]) -> None:
    assert choose(names, wanted, "owner/repo") == chosen


def test_a_quantization_of_two_models_is_a_question() -> None:
    with pytest.raises(ConfigError, match=r"several files for 'q8_0'; name one: a-q8_0\.gguf, b-q8_0\.gguf"):
        choose(["a-q8_0.gguf", "b-q8_0.gguf"], "q8_0", "owner/repo")
