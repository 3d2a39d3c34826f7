"""From a checkpoint's rope settings to the keys of a GGUF file."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ..errors import UnsupportedError
from .checkpoint_config import CheckpointConfig
from .decoder_checkpoint import head_size
from .rope import YARN_CUT

BASE = 10000.0
SCALED = ("default", "linear", "yarn")
"""Kinds that every architecture has; others need factors that only some of them read."""
_ALIASES = {"su": "longrope"}


def rope_section(config: CheckpointConfig, kind: str = "") -> CheckpointConfig:
    """The rope settings, of a kind of layer where they differ: newer configs have one section for all of them."""
    section = config.section("rope_parameters", "rope_scaling")
    return section.section(kind) if kind and section.has(kind) else section


def rope_type(section: CheckpointConfig, known: Iterable[str] = SCALED) -> str:
    """Which scaling; raises `UnsupportedError` for one that is not `known`."""
    kind = section.text("rope_type", section.text("type", "default"))
    kind = _ALIASES.get(kind, kind)
    if kind not in known:
        raise UnsupportedError(
            f"{section.path}: rope scaling {kind!r} is not supported for this architecture", known=known
        )
    return kind


def rope_base(config: CheckpointConfig, section: CheckpointConfig, default: float = BASE) -> float:
    """What frequencies are powers of."""
    return section.number("rope_theta", config.number("rope_theta", default))


def turning_channels(config: CheckpointConfig, section: CheckpointConfig) -> int:
    """Channels of a head that turn."""
    share = section.number("partial_rotary_factor", config.number("partial_rotary_factor", 1.0), high=1.0)
    return int(head_size(config) * share)


def rope_metadata(config: CheckpointConfig, *, known: Iterable[str] = SCALED, base: float = BASE) -> dict[str, object]:
    """The keys of layers that see the whole context; `base` is what a config without one means."""
    section = rope_section(config, "full_attention")
    metadata: dict[str, object] = {
        "rope.freq_base": rope_base(config, section, base),
        "rope.dimension_count": turning_channels(config, section),
    }
    return metadata | scaling_metadata(config, section, rope_type(section, known))


def scaling_metadata(config: CheckpointConfig, section: CheckpointConfig, kind: str) -> dict[str, object]:
    """The keys under `rope.scaling`; nothing of a kind that is expressed by factors alone."""
    if kind == "linear":
        return {"rope.scaling.type": kind, "rope.scaling.factor": section.number("factor")}
    if kind == "yarn":
        return _yarn(config, section)
    return _longrope(config, section) if kind == "longrope" else {}


def _yarn(config: CheckpointConfig, section: CheckpointConfig) -> dict[str, object]:
    """A file's magnitude is a factor on top of what follows from the scaling."""
    factor = section.number("factor")
    metadata: dict[str, object] = {
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": factor,
        "rope.scaling.original_context_length": original_context(config, section),
    }
    for ours, theirs in (("yarn_beta_fast", "beta_fast"), ("yarn_beta_slow", "beta_slow")):
        if section.has(theirs):
            metadata[f"rope.scaling.{ours}"] = section.number(theirs)
    if not section.flag("truncate", True):
        metadata[YARN_CUT] = False
    usual = _magnitude(factor, 1.0)
    scales = [section.number(key, 0.0, low=0.0) for key in ("mscale", "mscale_all_dim")]
    if section.has("attention_factor"):
        metadata["rope.scaling.attn_factor"] = section.number("attention_factor") / usual
    elif all(scales):
        metadata["rope.scaling.attn_factor"] = _magnitude(factor, scales[0]) / _magnitude(factor, scales[1]) / usual
    return metadata


def _magnitude(factor: float, scale: float) -> float:
    return 1 + 0.1 * scale * math.log(max(factor, 1.0))


def _longrope(config: CheckpointConfig, section: CheckpointConfig) -> dict[str, object]:
    """LongRoPE (arXiv 2402.13753): the magnitude follows from how many times longer the context became."""
    original = original_context(config, section)
    factor = section.number("factor", config.integer("max_position_embeddings") / original)
    usual = math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 and original > 1 else 1.0
    return {
        "rope.scaling.type": "longrope",
        "rope.scaling.original_context_length": original,
        "rope.scaling.attn_factor": section.number("attention_factor", usual),
    }


def original_context(config: CheckpointConfig, section: CheckpointConfig) -> int:
    """Tokens before the context was stretched; what the config itself says goes before its rope settings."""
    key = "original_max_position_embeddings"
    return config.integer(key, section.integer(key, config.integer("max_position_embeddings")))
