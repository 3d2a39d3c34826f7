"""Gemma 2: four norms a layer, every second layer with a window, scores and logits bent by soft caps.

Norm weights in the file are those of the checkpoint plus one already.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection

import numpy as np

from ...formats import GGUFFile
from ..arch import Arch
from ..checkpoint import Checkpoint, TensorRule, plus_one
from ..checkpoint_config import CheckpointConfig
from ..checkpoint_rope import rope_metadata
from ..checkpoint_window import window_metadata
from ..decoder_checkpoint import ATTENTION, FEED_FORWARD, UNUSED, decoder_metadata, decoder_tensors
from ..layers import ProgramBuilder
from ..metadata import Metadata
from ..program import Program
from ..read_spec import read_spec
from ..read_windows import with_windows
from ..spec import ModelSpec

_PERIOD = 2
_SCORE_CAP = 50.0
_LOGIT_CAP = 30.0
_LAYERS_OF_27B = 46


def read(gguf: GGUFFile, metadata: Metadata) -> ModelSpec:
    """Files that do not say otherwise have the caps and the scale of the published models."""
    spec = read_spec(gguf, metadata, rope="neox")
    # The 27B was trained with the scale of a head size that it does not have.
    scaled_size = spec.n_embd // spec.layers[0].n_head if spec.n_layers == _LAYERS_OF_27B else spec.key_length
    return dataclasses.replace(
        with_windows(spec, metadata, _PERIOD),
        embedding_scale=float(np.sqrt(np.float32(spec.n_embd))),
        attention_scale=metadata.number("attention.scale", 1 / math.sqrt(scaled_size)),
        attention_softcap=metadata.number("attn_logit_softcapping", _SCORE_CAP, low=0.0) or None,
        final_softcap=metadata.number("final_logit_softcapping", _LOGIT_CAP, low=0.0) or None,
        act="gelu_tanh",
    )


def build(spec: ModelSpec, tensors: Collection[str]) -> Program:
    """Each half of a layer is normed before and after, and only then added."""
    b = ProgramBuilder(spec, tensors)
    x = b.embed()
    for _ in b.layers():
        attended, x = b.asked_rows(b.attention(b.norm(x, "attn_norm")), x)
        x = b.add(x, b.norm(b.linear(attended, "attn_output", spec.n_embd), "post_attention_norm"))
        x = b.add(x, b.norm(b.feed_forward(b.norm(x, "ffn_norm")), "post_ffw_norm"))
    return b.finish(x)


def metadata(config: CheckpointConfig) -> dict[str, object]:
    """Scores are scaled by a number of the config, not by the head size."""
    return (
        decoder_metadata(config)
        | rope_metadata(config)
        | window_metadata(config, period=_PERIOD)
        | {
            "attention.scale": 1 / math.sqrt(config.number("query_pre_attn_scalar", 256.0)),
            "attn_logit_softcapping": config.number("attn_logit_softcapping", _SCORE_CAP),
            "final_logit_softcapping": config.number("final_logit_softcapping", _LOGIT_CAP),
        }
    )


NORMS = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}


def tensors(config: CheckpointConfig) -> list[TensorRule]:
    """Norms of a checkpoint lack the one that they are added to."""
    return [
        dataclasses.replace(rule, change=plus_one) if rule.target.endswith("norm.weight") else rule
        for rule in decoder_tensors(config, NORMS | ATTENTION | FEED_FORWARD)
    ]


GEMMA2 = Arch(read, build, Checkpoint(metadata, tensors, unused=UNUSED))
