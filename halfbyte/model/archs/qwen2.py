"""Qwen2 and Qwen2.5: a Llama whose rope turns halves and whose q, k and v have biases."""

from __future__ import annotations

from ...formats import GGUFFile
from ..arch import Arch
from ..metadata import Metadata
from ..read_spec import read_spec
from ..spec import ModelSpec
from .llama import build


def read(gguf: GGUFFile, metadata: Metadata) -> ModelSpec:
    """All layers are alike."""
    return read_spec(gguf, metadata, rope="neox")


QWEN2 = Arch(read, build)
