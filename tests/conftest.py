"""Fixtures that several folders share."""

from __future__ import annotations

import os
from functools import wraps
from pathlib import Path

import pytest

from halfbyte.cpu_kernels import loader
from halfbyte.hub.lock import locked


def pytest_configure(config: pytest.Config) -> None:
    """Workers that run side by side compile one after the other: each finds what those before it made, and one keeps
    all cores busy.
    """
    if not hasattr(config, "workerinput"):
        return
    compile_missing = loader._compile_missing

    @wraps(compile_missing)
    def one_at_a_time(isa, names, progress):
        folder = loader.folder_for(isa)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:  # where nothing can be written the compiler says so
            return compile_missing(isa, names, progress)
        with locked(folder / "compiling.lock", waiting=lambda: None):
            return compile_missing(isa, names, progress)

    loader._compile_missing = one_at_a_time


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
