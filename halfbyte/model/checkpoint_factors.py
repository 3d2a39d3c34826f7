"""From a checkpoint's rope settings to the tensors of factors in a GGUF file."""

from __future__ import annotations

import math

import numpy as np

from .checkpoint import Floats
from .checkpoint_config import CheckpointConfig
from .checkpoint_rope import SCALED, original_context, rope_base, rope_section, rope_type, turning_channels
from .rope_factors import LONG, NAME, SHORT

FACTORED = (*SCALED, "llama3", "longrope")
"""The kinds of an architecture that reads factors."""


def rope_factors(config: CheckpointConfig) -> dict[str, Floats]:
    """Tensors for the kinds that are expressed by factors, none for others."""
    section = rope_section(config)
    kind = rope_type(section, FACTORED)
    if kind == "llama3":
        return _llama3(config, section)
    return _longrope(config, section) if kind == "longrope" else {}


def _llama3(config: CheckpointConfig, section: CheckpointConfig) -> dict[str, Floats]:
    """Slow pairs are divided by the factor, fast ones stay, those between are mixed."""
    n_rot, base = turning_channels(config, section), rope_base(config, section)
    factor, original = section.number("factor"), original_context(config, section)
    low, high = section.number("low_freq_factor"), section.number("high_freq_factor")
    if high <= low:
        section.problem(f"{section.prefix}high_freq_factor", f"is {high}, not above low_freq_factor {low}")
        return {}
    waves = 2 * math.pi * base ** (np.arange(0, n_rot, 2) / n_rot)
    share = np.clip((original / waves - low) / (high - low), 0, 1)
    return {NAME: (1 / ((1 - share) / factor + share)).astype(np.float32)}


def _longrope(config: CheckpointConfig, section: CheckpointConfig) -> dict[str, Floats]:
    """One set for contexts longer than the original, one for the others."""
    pairs = turning_channels(config, section) // 2
    tensors = {}
    for name, key in ((LONG, "long_factor"), (SHORT, "short_factor")):
        factors = section.numbers(key)
        if len(factors) != pairs:
            section.problem(section.prefix + key, f"has {len(factors)} factors for {pairs} pairs that turn")
        tensors[name] = np.array(factors, np.float32)
    return tensors
