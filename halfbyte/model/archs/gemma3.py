"""Gemma 3: four norms a layer, normed queries and keys, five layers with a window for one without.

Norm weights in the file are those of the checkpoint plus one already.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection

import numpy as np

from ...errors import UnsupportedError
from ...formats import GGUFFile, Typed
from ..arch import Arch
from ..checkpoint import Checkpoint, TensorRule, plus_one
from ..checkpoint_config import CheckpointConfig
from ..checkpoint_rope import rope_base, rope_section, rope_type
from ..decoder_checkpoint import ATTENTION, FEED_FORWARD, HEAD_NORMS, UNUSED, decoder_metadata, decoder_tensors
from ..layers import ProgramBuilder
from ..metadata import Metadata
from ..program import Program
from ..read_spec import read_n_rot, read_spec
from ..read_windows import with_windows
from ..rope import plain_rope
from ..spec import ModelSpec

_PATTERN = 6
_LAYERS_OF_27B = 62


def read(gguf: GGUFFile, metadata: Metadata) -> ModelSpec:
    """Layers with a window turn by a base of their own and are never stretched."""
    spec = read_spec(gguf, metadata, rope="neox")
    n_rot = read_n_rot(metadata, spec.key_length)
    local = plain_rope("neox", n_rot, metadata.number("rope.freq_base_swa", 10000.0))
    # The 27B was trained with the scale of a head size that it does not have.
    scaled_size = spec.n_embd // spec.layers[0].n_head if spec.n_layers == _LAYERS_OF_27B else spec.key_length
    cap = metadata.number("final_logit_softcapping", 0.0, low=0.0)
    return dataclasses.replace(
        with_windows(spec, metadata, _PATTERN, local),
        embedding_scale=float(np.sqrt(np.float32(spec.n_embd))),
        attention_scale=metadata.number("attention.scale", 1 / math.sqrt(scaled_size)),
        act="gelu_tanh",
        final_softcap=cap or None,
    )


def build(spec: ModelSpec, tensors: Collection[str]) -> Program:
    """Each half of a layer is normed before and after, and only then added."""
    b = ProgramBuilder(spec, tensors)
    x = b.embed()
    for _ in b.layers():
        attended = b.attention(b.norm(x, "attn_norm"), norm="heads")
        attended, x = b.asked_rows(attended, x)
        x = b.add(x, b.norm(b.linear(attended, "attn_output", spec.n_embd), "post_attention_norm"))
        x = b.add(x, b.norm(b.feed_forward(b.norm(x, "ffn_norm")), "post_ffw_norm"))
    return b.finish(x)


def metadata(config: CheckpointConfig) -> dict[str, object]:
    """Newer configs list the kind of every layer; a file has the one period, or the list of what has a window.

    Raises `UnsupportedError` for a model whose tokens see those after them.
    """
    if config.flag("use_bidirectional_attention", False):
        raise UnsupportedError(
            f"{config.path}: use_bidirectional_attention makes an encoder of it, which we do not have"
        )
    everywhere = config if config.has("rope_theta") else rope_section(config, "full_attention")
    local = rope_section(config, "sliding_attention")
    keys = decoder_metadata(config) | {
        "rope.freq_base": rope_base(everywhere, rope_section(config, "full_attention")),
        "rope.freq_base_swa": local.number("rope_theta", config.number("rope_local_base_freq", 10000.0)),
        "attention.sliding_window": config.integer("sliding_window"),
        "attention.scale": 1 / math.sqrt(config.number("query_pre_attn_scalar", 256.0)),
    }
    full = rope_section(config, "full_attention")
    if rope_type(full) == "linear":
        keys |= {"rope.scaling.type": "linear", "rope.scaling.factor": full.number("factor")}
    kinds = config.texts("layer_types")
    if kinds:
        keys["attention.sliding_window_pattern"] = Typed([kind == "sliding_attention" for kind in kinds], "bool")
    elif config.has("sliding_window_pattern"):
        keys["attention.sliding_window_pattern"] = config.integer("sliding_window_pattern")
    if config.has("final_logit_softcapping"):
        keys["final_logit_softcapping"] = config.number("final_logit_softcapping")
    return keys


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
        for rule in decoder_tensors(config, NORMS | HEAD_NORMS | ATTENTION | FEED_FORWARD)
    ]


GEMMA3 = Arch(read, build, Checkpoint(metadata, tensors, unused=UNUSED))
