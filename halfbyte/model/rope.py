"""From metadata to a `RopeTable`: how fast each pair of channels turns."""

from __future__ import annotations

import math
from typing import Literal

from ..errors import UnsupportedError
from .metadata import Metadata
from .program import RopeTable

Factors = tuple[float, ...]
_SCALINGS = ("none", "linear", "yarn")
_BY_FACTORS = "longrope"
_BETA_FAST = 32.0
_BETA_SLOW = 1.0
YARN_CUT = "rope.scaling.yarn_truncate"


def plain_rope(kind: Literal["norm", "neox"], n_rot: int, freq_base: float) -> RopeTable:
    """Unscaled frequencies `freq_base ** (-2i / n_rot)`."""
    return RopeTable(kind, _frequencies(n_rot, freq_base))


def read_rope(
    metadata: Metadata,
    kind: Literal["norm", "neox"],
    n_rot: int,
    factors: Factors | None = None,
    *,
    cut: bool = True,
) -> RopeTable:
    """The rope of layers that see the whole context, scaled as the metadata says.

    `factors` (a tensor of the file) divide the frequencies one by one. `cut`: whether YaRN's mixing begins and ends at
    whole pairs where the file does not say. Raises `UnsupportedError` for a scaling we do not have.
    """
    freq_base = metadata.number("rope.freq_base", 10000.0)
    scaling = metadata.text("rope.scaling.type", "linear")
    known = _SCALINGS if factors is None else (*_SCALINGS, _BY_FACTORS)
    if scaling not in known:
        raise UnsupportedError(f"{metadata.arch}.rope.scaling.type: unknown rope scaling {scaling!r}", known=known)
    attn_factor = metadata.number("rope.scaling.attn_factor", 1.0)
    turns = _frequencies(n_rot, freq_base)
    if factors is not None and len(factors) == len(turns):
        turns = tuple(turn / factor for turn, factor in zip(turns, factors, strict=True))
    factor = 1.0 if scaling == "none" else _scaling_factor(metadata)
    if scaling == "yarn":
        # Our own key: other programs always cut, a few checkpoints do not.
        cut = metadata.flag(YARN_CUT, cut)
        return _yarn(metadata, RopeTable(kind, turns, attn_factor), freq_base, factor, cut=cut)
    return RopeTable(kind, tuple(turn / factor for turn in turns), attn_factor)


def _frequencies(n_rot: int, freq_base: float) -> tuple[float, ...]:
    return tuple(freq_base ** (-2 * i / n_rot) for i in range(n_rot // 2))


def _scaling_factor(metadata: Metadata) -> float:
    """Files from before `rope.scaling.factor` say `rope.scale_linear`; 0 in either means that nothing is scaled."""
    key = "rope.scaling.factor" if metadata.has("rope.scaling.factor") else "rope.scale_linear"
    return metadata.number(key, 1.0, low=0.0) or 1.0


def _yarn(metadata: Metadata, table: RopeTable, freq_base: float, factor: float, *, cut: bool) -> RopeTable:
    """YaRN (arXiv 2309.00071): fast pairs stay, slow pairs are interpolated, those between are mixed."""
    turns = table.inv_freq
    n_rot = 2 * len(turns)
    trained = metadata.integer("rope.scaling.original_context_length", metadata.integer("context_length"))
    fast = metadata.number("rope.scaling.yarn_beta_fast", _BETA_FAST)
    slow = metadata.number("rope.scaling.yarn_beta_slow", _BETA_SLOW)
    if freq_base == 1.0:
        metadata.problem(f"{metadata.arch}.rope.freq_base", "is 1, which YaRN cannot scale")
        freq_base = 2.0

    def pair_turning(times: float) -> float:
        return n_rot * math.log(trained / (times * 2 * math.pi)) / (2 * math.log(freq_base))

    low, high = pair_turning(fast), pair_turning(slow)
    if cut:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(0, low), min(n_rot - 1, high)
    scaled = []
    for i, turn in enumerate(turns):
        keep = 1 - min(1.0, max(0.0, (i - low) / max(0.001, high - low)))
        scaled.append(turn * (keep + (1 - keep) / factor))
    return RopeTable(table.kind, tuple(scaled), table.magnitude * (1 + 0.1 * math.log(max(factor, 1.0))))
