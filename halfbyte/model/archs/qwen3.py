"""Qwen3: a Qwen2 that norms each head of queries and keys instead of adding biases."""

from __future__ import annotations

from collections.abc import Collection

from ..arch import Arch
from ..checkpoint import Checkpoint, TensorRule
from ..checkpoint_config import CheckpointConfig
from ..decoder_checkpoint import ATTENTION, FEED_FORWARD, HEAD_NORMS, PRE_NORMS, UNUSED, decoder_tensors
from ..program import Program
from ..spec import ModelSpec
from . import llama
from .qwen2 import metadata, read


def build(spec: ModelSpec, tensors: Collection[str]) -> Program:
    """Heads are normed before they are turned."""
    return llama.build(spec, tensors, norm="heads")


def tensors(config: CheckpointConfig) -> list[TensorRule]:
    """Rows as they are."""
    return decoder_tensors(config, PRE_NORMS | HEAD_NORMS | ATTENTION | FEED_FORWARD)


QWEN3 = Arch(read, build, Checkpoint(metadata, tensors, unused=UNUSED))
