"""Qwen3 with experts in place of the feed-forward, in all layers or in some."""

from __future__ import annotations

from ...formats import GGUFFile
from ..arch import Arch
from ..checkpoint import Checkpoint, TensorRule
from ..checkpoint_config import CheckpointConfig
from ..checkpoint_experts import ExpertNames, expert_metadata, expert_rules
from ..decoder_checkpoint import (
    ATTENTION,
    FEED_FORWARD,
    HEAD_NORMS,
    PRE_NORMS,
    UNUSED,
    block_count,
    decoder_tensors,
    layer_tensors,
)
from ..metadata import Metadata
from ..read_experts import read_experts
from ..read_spec import read_spec
from ..read_windows import with_windows
from ..spec import ModelSpec
from . import qwen2
from .qwen3 import build


def read(gguf: GGUFFile, metadata: Metadata) -> ModelSpec:
    """Without experts it would be another architecture."""
    experts = read_experts(metadata, always=True)
    return with_windows(read_spec(gguf, metadata, rope="neox", experts=experts), metadata)


def metadata(config: CheckpointConfig) -> dict[str, object]:
    """Weights of the chosen experts add up to one only if the config says so."""
    return (
        qwen2.metadata(config)
        | expert_metadata(config)
        | {
            "expert_feed_forward_length": config.integer("moe_intermediate_size"),
            "expert_weights_norm": config.flag("norm_topk_prob", False),
        }
    )


NAMES = ExpertNames("mlp.gate", "mlp.experts", gate="gate_proj", up="up_proj", down="down_proj")


def tensors(config: CheckpointConfig) -> list[TensorRule]:
    """Layers without experts are those that are listed, and all but every so many-th."""
    step, dense = config.integer("decoder_sparse_step", 1), config.integers("mlp_only_layers")
    mixed = [i for i in range(block_count(config)) if i not in dense and (i + 1) % step == 0]
    rules = decoder_tensors(config, PRE_NORMS | HEAD_NORMS | ATTENTION) + expert_rules(config, NAMES, mixed)
    for i in set(range(block_count(config))) - set(mixed):
        rules += layer_tensors(i, FEED_FORWARD)
    return rules


QWEN3MOE = Arch(read, build, Checkpoint(metadata, tensors, unused=UNUSED))
