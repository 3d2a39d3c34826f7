"""A tiny model of every architecture, written once a session."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.formats import open_gguf
from halfbyte.model import bind
from halfbyte.model.archs import ARCHS
from tests.model.tiny import make_tiny_gguf
from tests.model.tiny_traits import USUAL


@pytest.fixture
def rng():
    return np.random.default_rng(20)


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {arch: bind(open_gguf(make_tiny_gguf(folder / f"{arch}.gguf", arch))) for arch in ARCHS}


@pytest.fixture(params=USUAL)
def model(request, tiny_models):
    """One of the usual decoders, f32 weights."""
    return tiny_models[request.param]


@pytest.fixture
def bound(tmp_path):
    """`bound(arch, **choices)`: write a tiny model and bind it."""

    def make(arch="llama", **choices):
        return bind(open_gguf(make_tiny_gguf(tmp_path / "model.gguf", arch, **choices)))

    return make
