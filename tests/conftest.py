"""Fixtures that several folders share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """The real 135M model, fetched into the user's cache once; HALFBYTE_TEST_MODEL_DIR names a folder that has it."""
    folder = os.environ.get("HALFBYTE_TEST_MODEL_DIR")
    if folder:
        return Path(folder) / "smollm2-135m-q4_1.gguf"
    from halfbyte.hub import resolve

    return resolve("smollm2-135m")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever asks for the real model is marked `model`, so that `-m 'not model'` leaves all of them out."""
    for item in items:
        if "smollm2_path" in getattr(item, "fixturenames", ()):
            item.add_marker("model")
