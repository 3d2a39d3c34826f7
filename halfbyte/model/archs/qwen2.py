"""Qwen2 and Qwen2.5: a Llama whose rope turns halves and whose q, k and v have biases."""

from __future__ import annotations

from ...formats import GGUFFile
from ..arch import Arch
from ..checkpoint import Checkpoint, TensorRule
from ..checkpoint_config import CheckpointConfig
from ..decoder_checkpoint import ATTENTION, FEED_FORWARD, PRE_NORMS, UNUSED, decoder_tensors
from ..metadata import Metadata
from ..read_spec import read_spec
from ..spec import ModelSpec
from .llama import build, metadata


def read(gguf: GGUFFile, metadata: Metadata) -> ModelSpec:
    """All layers are alike."""
    return read_spec(gguf, metadata, rope="neox")


def tensors(config: CheckpointConfig) -> list[TensorRule]:
    """Rows as they are."""
    return decoder_tensors(config, PRE_NORMS | ATTENTION | FEED_FORWARD, biases=("attn_q", "attn_k", "attn_v"))


QWEN2 = Arch(read, build, Checkpoint(metadata, tensors, unused=UNUSED))
