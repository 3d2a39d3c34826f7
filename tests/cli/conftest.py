from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import halfbyte
from halfbyte.cli.main import main
from halfbyte.runtime.backends import BACKENDS, build_reference
from tests.cli.fake_llm import FakeLLM


@dataclass(frozen=True)
class Outcome:
    """What one command line did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Run a command line in this process; `piped` is what stdin holds, None a stdin that is not read."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("HALFBYTE_CACHE", str(tmp_path / "cache"))

    def outcome(*words: str, piped: bytes | None = None) -> Outcome:
        source = tmp_path / "stdin"
        source.write_bytes(piped or b"")
        path = "/dev/null" if piped is None else str(source)
        with open(path, "rb") as raw:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(raw))
            code = main(words)
        said = capsys.readouterr()
        return Outcome(code, said.out, said.err)

    return outcome


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[FakeLLM]:
    """`halfbyte.load` gives an echo; the list holds every model that was loaded."""
    models: list[FakeLLM] = []

    def load(model: object, **options: Any) -> FakeLLM:
        models.append(FakeLLM(model, **options))
        return models[-1]

    # Past the attribute, which would import the whole library to remember what it was.
    monkeypatch.setitem(vars(halfbyte), "load", load)
    return models


Run = Callable[..., Outcome]
Words = Sequence[str]


@pytest.fixture
def no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models run in NumPy: each test has a kernel cache of its own, which would be filled anew."""
    monkeypatch.setattr(BACKENDS, "_resolved", {"cpu": build_reference})
