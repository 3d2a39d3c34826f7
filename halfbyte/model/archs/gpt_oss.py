"""gpt-oss: experts with biases and a clamped gate, sinks that take a share of every token's attention, every second
layer with a window, YaRN.

Checkpoints have gates and ups of an expert as columns that take turns; files have them apart.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

import numpy as np

from ...errors import UnsupportedError
from ...formats import GGUFFile
from ..arch import Arch
from ..checkpoint import Checkpoint, Choice, TensorRule
from ..checkpoint_config import CheckpointConfig
from ..checkpoint_experts import expert_metadata
from ..checkpoint_rope import rope_metadata, rope_section
from ..checkpoint_window import window_metadata
from ..decoder_checkpoint import (
    ATTENTION,
    UNUSED,
    block_count,
    decoder_metadata,
    decoder_tensors,
    rename,
)
from ..layers import ProgramBuilder
from ..metadata import Metadata
from ..program import Program
from ..read_experts import read_experts
from ..read_spec import read_n_rot, read_spec
from ..read_windows import with_windows
from ..rope import YARN_CUT, read_rope
from ..spec import ModelSpec

_PERIOD = 2
_ROPE_BASE = 150000.0
_ALPHA, _LIMIT = 1.702, 7.0


def read(gguf: GGUFFile, metadata: Metadata) -> ModelSpec:
    """These models were trained with YaRN that is not cut at whole pairs, which other programs' files do not say."""
    spec = read_spec(gguf, metadata, rope=None, experts=read_experts(metadata, always=True))
    rope = read_rope(metadata, "neox", read_n_rot(metadata, spec.key_length), cut=False)
    layers = tuple(dataclasses.replace(layer, rope=rope) for layer in spec.layers)
    return with_windows(dataclasses.replace(spec, layers=layers, act="swiglu_oai"), metadata, _PERIOD)


def build(spec: ModelSpec, tensors: Collection[str]) -> Program:
    """The norm before the experts has the name that elsewhere one behind attention has."""
    b = ProgramBuilder(spec, tensors)
    x = b.embed()
    for _ in b.layers():
        attended, x = b.asked_rows(b.attention(b.norm(x, "attn_norm")), x)
        x = b.add(x, b.linear(attended, "attn_output", spec.n_embd))
        x = b.add(x, b.experts(b.norm(x, "post_attention_norm")))
    return b.finish(x)


def metadata(config: CheckpointConfig) -> dict[str, object]:
    """Raises `UnsupportedError` for a gate that is clamped elsewhere."""
    gate = config.number("swiglu_alpha", _ALPHA), config.number("swiglu_limit", _LIMIT)
    if gate != (_ALPHA, _LIMIT):
        raise UnsupportedError(f"{config.path}: swiglu_alpha and swiglu_limit are {gate}, not {(_ALPHA, _LIMIT)}")
    return (
        decoder_metadata(config)
        | rope_metadata(config, base=_ROPE_BASE)
        | window_metadata(config, period=_PERIOD)
        | expert_metadata(config)
        | {
            YARN_CUT: rope_section(config).flag("truncate", True),
            "expert_feed_forward_length": config.integer("intermediate_size"),
        }
    )


LAYER = ATTENTION | {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "post_attention_norm",
    "mlp.router": "ffn_gate_inp",
}
BIASED = (*ATTENTION.values(), "ffn_gate_inp")


def tensors(config: CheckpointConfig) -> list[TensorRule]:
    """Matrices of experts multiply from the right in a checkpoint."""
    rules = decoder_tensors(config, LAYER, biases=BIASED)
    parts: dict[str, tuple[str, Choice | None]] = {
        "ffn_gate_exps": ("gate_up_proj", _every_second(0)),
        "ffn_up_exps": ("gate_up_proj", _every_second(1)),
        "ffn_down_exps": ("down_proj", None),
    }
    for i in range(block_count(config)):
        layer = f"model.layers.{i}"
        rules.append(rename(f"{layer}.self_attn.sinks", f"blk.{i}.attn_sinks.weight"))
        for target, (source, choice) in parts.items():
            at, to = f"{layer}.mlp.experts.{source}", f"blk.{i}.{target}"
            rules.append(TensorRule(f"{to}.weight", (at,), transposed=True, rows=choice))
            rules.append(TensorRule(f"{to}.bias", (f"{at}_bias",), columns=choice))
    return rules


def _every_second(first: int) -> Choice:
    return lambda count: np.arange(first, count, 2)


GPT_OSS = Arch(read, build, Checkpoint(metadata, tensors, unused=UNUSED))
