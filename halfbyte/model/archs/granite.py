"""Granite 3 and 4, the dense ones: a Llama that scales embeddings, scores, residuals and logits by numbers of its own.

Files have the rows of queries and keys in another order than checkpoints, as Llama's do.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from ...formats import GGUFFile
from ..arch import Arch
from ..checkpoint import Checkpoint
from ..checkpoint_config import CheckpointConfig
from ..checkpoint_factors import FACTORED, rope_factors
from ..checkpoint_rope import rope_metadata
from ..decoder_checkpoint import UNUSED, decoder_metadata
from ..layers import ProgramBuilder
from ..metadata import Metadata
from ..program import Program
from ..read_spec import read_spec
from ..rope_factors import FACTORS, read_rope_factors
from ..spec import ModelSpec
from .llama import tensors


def read(gguf: GGUFFile, metadata: Metadata) -> ModelSpec:
    """The file's `logit_scale` is what logits are divided by."""
    spec = read_spec(gguf, metadata, rope="norm", factors=read_rope_factors(gguf, metadata))
    turns = metadata.flag("rope.scaling.finetuned", True)
    return dataclasses.replace(
        spec,
        layers=spec.layers if turns else tuple(dataclasses.replace(layer, rope=None) for layer in spec.layers),
        embedding_scale=metadata.number("embedding_scale", 1.0),
        attention_scale=metadata.number("attention.scale", 0.0, low=0.0) or spec.attention_scale,
        residual_scale=metadata.number("residual_scale", 1.0),
        logit_scale=1 / metadata.number("logit_scale"),
    )


def build(spec: ModelSpec, tensors: Collection[str]) -> Program:
    """What a layer adds is scaled."""
    b = ProgramBuilder(spec, tensors)
    x = b.embed()
    for _ in b.layers():
        attended, x = b.asked_rows(b.attention(b.norm(x, "attn_norm")), x)
        x = b.residual(x, b.linear(attended, "attn_output", spec.n_embd))
        x = b.residual(x, b.feed_forward(b.norm(x, "ffn_norm")))
    return b.finish(x)


def metadata(config: CheckpointConfig) -> dict[str, object]:
    """Four multipliers."""
    return (
        decoder_metadata(config)
        | rope_metadata(config, known=FACTORED)
        | {
            "embedding_scale": config.number("embedding_multiplier", 1.0),
            "attention.scale": config.number("attention_multiplier", 1.0),
            "residual_scale": config.number("residual_multiplier", 1.0),
            "logit_scale": config.number("logits_scaling", 1.0),
        }
    )


GRANITE = Arch(read, build, Checkpoint(metadata, tensors, rope_factors, UNUSED), FACTORS)
