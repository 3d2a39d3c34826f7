"""Qwen2 and Qwen2.5: a Llama whose rope turns halves and whose q, k and v have biases."""

from __future__ import annotations

from ...formats import GGUFFile
from ..arch import Arch
from ..checkpoint import Checkpoint, TensorRule
from ..checkpoint_config import CheckpointConfig
from ..checkpoint_rope import rope_metadata
from ..checkpoint_window import window_metadata
from ..decoder_checkpoint import ATTENTION, FEED_FORWARD, PRE_NORMS, UNUSED, decoder_metadata, decoder_tensors
from ..metadata import Metadata
from ..read_spec import read_spec
from ..read_windows import with_windows
from ..spec import ModelSpec
from .llama import build


def read(gguf: GGUFFile, metadata: Metadata) -> ModelSpec:
    """All layers are alike, unless some have a window."""
    return with_windows(read_spec(gguf, metadata, rope="neox"), metadata)


def metadata(config: CheckpointConfig) -> dict[str, object]:
    """A window counts only where the config says that it is used."""
    return decoder_metadata(config) | rope_metadata(config) | window_metadata(config, used=False)


def tensors(config: CheckpointConfig) -> list[TensorRule]:
    """Rows as they are."""
    return decoder_tensors(config, PRE_NORMS | ATTENTION | FEED_FORWARD, biases=("attn_q", "attn_k", "attn_v"))


QWEN2 = Arch(read, build, Checkpoint(metadata, tensors, unused=UNUSED))
