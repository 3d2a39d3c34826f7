"""Phi-3, Phi-3.5 and Phi-4: queries, keys and values are one matrix, the gate and what it gates another."""

from __future__ import annotations

from collections.abc import Collection

from ...formats import GGUFFile
from ..arch import Arch
from ..checkpoint import Checkpoint, TensorRule
from ..checkpoint_config import CheckpointConfig
from ..checkpoint_factors import rope_factors
from ..checkpoint_rope import rope_metadata
from ..checkpoint_window import window_metadata
from ..decoder_checkpoint import PRE_NORMS, UNUSED, decoder_metadata, decoder_tensors
from ..metadata import Metadata
from ..program import Program
from ..read_spec import read_spec
from ..read_windows import with_windows
from ..rope_factors import LONG, SHORT, read_rope_factors
from ..spec import ModelSpec
from . import llama


def read(gguf: GGUFFile, metadata: Metadata) -> ModelSpec:
    """Long contexts turn by other factors than short ones."""
    return with_windows(read_spec(gguf, metadata, rope="neox", factors=read_rope_factors(gguf, metadata)), metadata)


def build(spec: ModelSpec, tensors: Collection[str]) -> Program:
    """The gate lies above what it gates."""
    return llama.build(spec, tensors, fused=True)


_FUSED = {
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def metadata(config: CheckpointConfig) -> dict[str, object]:
    """Other programs want to be told that there is no window: 0."""
    window = window_metadata(config) or {"attention.sliding_window": 0}
    return decoder_metadata(config) | rope_metadata(config, known=("default", "longrope")) | window


def tensors(config: CheckpointConfig) -> list[TensorRule]:
    """Matrices stay fused."""
    return decoder_tensors(config, PRE_NORMS | _FUSED)


PHI3 = Arch(read, build, Checkpoint(metadata, tensors, rope_factors, UNUSED), (LONG, SHORT))
