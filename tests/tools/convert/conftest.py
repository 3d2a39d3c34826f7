from __future__ import annotations

import pytest

from tests.tools.convert.tiny_folder import make_folder


@pytest.fixture
def folder(tmp_path):
    """A sound checkpoint, to be broken."""
    return make_folder(tmp_path / "checkpoint")
