"""Which layers see only the last tokens, by `attention.sliding_window` and `attention.sliding_window_pattern`."""

from __future__ import annotations

import dataclasses

import numpy as np

from .metadata import Metadata
from .program import RopeTable
from .spec import ModelSpec

_PATTERN = "attention.sliding_window_pattern"


def with_windows(spec: ModelSpec, metadata: Metadata, period: int = 0, rope: RopeTable | None = None) -> ModelSpec:
    """`spec` with the windows that the file has; `rope` is that of layers with one where they turn by their own.

    All layers but the last of every `period` have it, of which 0 means all layers; a file may have a period of its own,
    or an array that says it of each layer. A window of 0 is none.
    """
    window = metadata.integer("attention.sliding_window", 0, low=0)
    local = _local_layers(metadata, spec.n_layers, period) if window else (False,) * spec.n_layers
    layers = tuple(
        dataclasses.replace(layer, rope=rope or layer.rope, window=window) if is_local else layer
        for layer, is_local in zip(spec.layers, local, strict=True)
    )
    return dataclasses.replace(spec, layers=layers)


def _local_layers(metadata: Metadata, n_layers: int, period: int) -> tuple[bool, ...]:
    given = metadata.values.get(metadata.prefix + _PATTERN)
    if isinstance(given, np.ndarray) and given.dtype.kind in "biu" and len(given) == n_layers:
        return tuple(bool(local) for local in given)
    period = metadata.integer(_PATTERN, period, low=0)
    return tuple(is_usual(i, period) for i in range(n_layers))


def is_usual(layer: int, period: int) -> bool:
    """Whether it has a window where all layers but the last of every `period` have one, of 0 all."""
    return period == 0 or layer % period < period - 1
