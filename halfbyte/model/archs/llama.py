"""Llama 2 and 3, Mistral, Mixtral, SmolLM2, TinyLlama, Yi: the plain pre-norm decoder.

Files have the rows of queries and keys in another order than checkpoints, so that neighbours turn instead of halves.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection
from typing import Literal

from ...formats import GGUFFile
from ..arch import Arch
from ..checkpoint import Checkpoint, TensorRule
from ..checkpoint_config import CheckpointConfig
from ..checkpoint_experts import ExpertNames, expert_metadata, expert_rules
from ..checkpoint_factors import FACTORED, rope_factors
from ..checkpoint_rope import BASE, rope_metadata
from ..checkpoint_window import window_metadata
from ..decoder_checkpoint import (
    ATTENTION,
    FEED_FORWARD,
    PRE_NORMS,
    UNUSED,
    decoder_metadata,
    decoder_tensors,
    head_size,
    interleaved_heads,
)
from ..layers import ProgramBuilder
from ..metadata import Metadata
from ..program import Program
from ..read_experts import read_experts
from ..read_spec import read_spec
from ..read_windows import with_windows
from ..rope_factors import FACTORS, read_rope_factors
from ..spec import ModelSpec


def read(gguf: GGUFFile, metadata: Metadata) -> ModelSpec:
    """Llama 3 stretches its context by factors that the file holds as a tensor, Mistral may have a window."""
    factors, experts = read_rope_factors(gguf, metadata), read_experts(metadata)
    return with_windows(read_spec(gguf, metadata, rope="norm", factors=factors, experts=experts), metadata)


def build(
    spec: ModelSpec, tensors: Collection[str], *, norm: Literal["none", "heads", "rows"] = "none", fused: bool = False
) -> Program:
    """Biases, experts and a head of its own are there where the file has them; the choices are for other files."""
    b = ProgramBuilder(spec, tensors)
    x = b.embed()
    for _ in b.layers():
        attended = b.attention(b.norm(x, "attn_norm"), norm=norm)
        attended, x = b.asked_rows(attended, x)
        x = b.add(x, b.linear(attended, "attn_output", spec.n_embd))
        x = b.add(x, b.feed_forward_or_experts(b.norm(x, "ffn_norm"), fused=fused))
    return b.finish(x)


MIXTRAL = ExpertNames("block_sparse_moe.gate", "block_sparse_moe.experts", gate="w1", up="w3", down="w2")
_MIXTRAL_BASE = 1e6


def metadata(config: CheckpointConfig) -> dict[str, object]:
    """Mixtral's experts are as wide as its config says of the feed-forward."""
    has_experts = config.has("num_local_experts")
    keys = decoder_metadata(config) | window_metadata(config)
    keys |= rope_metadata(config, known=FACTORED, base=_MIXTRAL_BASE if has_experts else BASE)
    return keys | (expert_metadata(config) if has_experts else {})


def tensors(config: CheckpointConfig) -> list[TensorRule]:
    """Heads of queries and keys are put in the file's order."""
    if config.has("num_local_experts"):
        rules = decoder_tensors(config, PRE_NORMS | ATTENTION) + expert_rules(config, MIXTRAL)
    else:
        rules = decoder_tensors(config, PRE_NORMS | ATTENTION | FEED_FORWARD)
    rows = interleaved_heads(head_size(config))
    turned = re.compile(r"blk\.\d+\.attn_[qk]\.(weight|bias)")
    return [dataclasses.replace(rule, rows=rows) if turned.fullmatch(rule.target) else rule for rule in rules]


LLAMA = Arch(read, build, Checkpoint(metadata, tensors, rope_factors, UNUSED), FACTORS)
