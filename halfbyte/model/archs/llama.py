"""Llama 2 and 3, Mistral, Mixtral, SmolLM2, TinyLlama, Yi: the plain pre-norm decoder.

Files have the rows of queries and keys in another order than checkpoints, so that neighbours turn instead of halves.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection

from ...formats import GGUFFile
from ..arch import Arch
from ..checkpoint import Checkpoint, TensorRule
from ..checkpoint_config import CheckpointConfig
from ..checkpoint_rope import llama3_factors, rope_metadata
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
from ..rope_factors import read_rope_factors
from ..spec import ModelSpec


def read(gguf: GGUFFile, metadata: Metadata) -> ModelSpec:
    """Llama 3 stretches its context by factors that the file holds as a tensor."""
    return read_spec(
        gguf, metadata, rope="norm", factors=read_rope_factors(gguf, metadata), experts=read_experts(metadata)
    )


def build(spec: ModelSpec, tensors: Collection[str]) -> Program:
    """Biases and a head of its own are there where the file has them."""
    b = ProgramBuilder(spec, tensors)
    x = b.embed()
    for _ in b.layers():
        attended = b.attention(b.norm(x, "attn_norm"))
        attended, x = b.asked_rows(attended, x)
        x = b.add(x, b.linear(attended, "attn_output", spec.n_embd))
        x = b.add(x, b.feed_forward_or_experts(b.norm(x, "ffn_norm")))
    return b.finish(x)


def metadata(config: CheckpointConfig) -> dict[str, object]:
    """Nothing of its own."""
    return decoder_metadata(config) | rope_metadata(config)


def tensors(config: CheckpointConfig) -> list[TensorRule]:
    """Heads of queries and keys are put in the file's order."""
    rules = decoder_tensors(config, PRE_NORMS | ATTENTION | FEED_FORWARD)
    rows = interleaved_heads(head_size(config))
    turned = re.compile(r"blk\.\d+\.attn_[qk]\.(weight|bias)")
    return [dataclasses.replace(rule, rows=rows) if turned.fullmatch(rule.target) else rule for rule in rules]


LLAMA = Arch(read, build, Checkpoint(metadata, tensors, llama3_factors, UNUSED))
