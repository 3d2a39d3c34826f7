"""A tiny random model: it has no opinion, so whatever it says right was asked of it."""

from __future__ import annotations

import pytest

import halfbyte
from tests.model.tiny import make_tiny_gguf


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return make_tiny_gguf(tmp_path_factory.mktemp("model") / "tiny.gguf", n_layers=1)


@pytest.fixture(scope="module")
def llm(path):
    with halfbyte.load(path, backend="reference", speculation="off", context=256) as made:
        yield made
