"""From a checkpoint's rope settings to the keys and factors of a GGUF file."""

from __future__ import annotations

import math

import numpy as np

from ..errors import UnsupportedError
from .checkpoint import Floats
from .checkpoint_config import CheckpointConfig
from .decoder_checkpoint import head_size
from .rope_factors import NAME as ROPE_FACTORS

BASE = 10000.0
_KNOWN = ("default", "linear", "yarn", "llama3", "longrope")
_PLAIN = ("default", "longrope", "llama3")
"""Kinds that a file expresses by tensors of factors, if at all."""


def rope_section(config: CheckpointConfig, kind: str = "") -> CheckpointConfig:
    """The rope settings, of a kind of layer where they differ: newer configs have one section for all of them."""
    section = config.section("rope_parameters", "rope_scaling")
    return section.section(kind) if kind and section.has(kind) else section


def rope_type(section: CheckpointConfig) -> str:
    """Which scaling; raises `UnsupportedError` for one we do not have."""
    kind = section.text("rope_type", section.text("type", "default"))
    if kind not in _KNOWN:
        raise UnsupportedError(f"{section.path}: unknown rope scaling {kind!r}", known=_KNOWN)
    return kind


def rope_base(config: CheckpointConfig, section: CheckpointConfig) -> float:
    """What frequencies are powers of."""
    return section.number("rope_theta", config.number("rope_theta", BASE))


def turning_channels(config: CheckpointConfig, section: CheckpointConfig) -> int:
    """Channels of a head that turn."""
    share = section.number("partial_rotary_factor", config.number("partial_rotary_factor", 1.0), high=1.0)
    return int(head_size(config) * share)


def rope_metadata(config: CheckpointConfig) -> dict[str, object]:
    """The keys of layers that see the whole context."""
    section = rope_section(config)
    kind = rope_type(section)
    metadata: dict[str, object] = {
        "rope.freq_base": rope_base(config, section),
        "rope.dimension_count": turning_channels(config, section),
    }
    if kind in _PLAIN:
        return metadata
    metadata |= {"rope.scaling.type": kind, "rope.scaling.factor": section.number("factor")}
    return metadata | (_yarn(config, section) if kind == "yarn" else {})


def _yarn(config: CheckpointConfig, section: CheckpointConfig) -> dict[str, object]:
    """A file's magnitude is a factor on top of what follows from the scaling."""
    original = section.integer("original_max_position_embeddings", config.integer("max_position_embeddings"))
    metadata: dict[str, object] = {"rope.scaling.original_context_length": original}
    for ours, theirs in (("yarn_beta_fast", "beta_fast"), ("yarn_beta_slow", "beta_slow")):
        if section.has(theirs):
            metadata[f"rope.scaling.{ours}"] = section.number(theirs)
    if section.has("attention_factor"):
        usual = 1 + 0.1 * math.log(max(section.number("factor"), 1.0))
        metadata["rope.scaling.attn_factor"] = section.number("attention_factor") / usual
    return metadata


def llama3_factors(config: CheckpointConfig) -> dict[str, Floats]:
    """`rope_freqs.weight`: slow pairs are divided by the factor, fast ones stay, those between are mixed."""
    section = rope_section(config)
    if rope_type(section) != "llama3":
        return {}
    n_rot, base = turning_channels(config, section), rope_base(config, section)
    factor, original = section.number("factor"), section.integer("original_max_position_embeddings")
    low, high = section.number("low_freq_factor"), section.number("high_freq_factor")
    if high <= low:
        section.problem(f"{section.prefix}high_freq_factor", f"is {high}, not above low_freq_factor {low}")
        return {}
    waves = 2 * math.pi * base ** (np.arange(0, n_rot, 2) / n_rot)
    share = np.clip((original / waves - low) / (high - low), 0, 1)
    return {ROPE_FACTORS: (1 / ((1 - share) / factor + share)).astype(np.float32)}
