"""SmolLM3: a Llama that does not turn the heads of every fourth layer."""

from __future__ import annotations

import dataclasses

import numpy as np

from ...formats import GGUFFile, Typed
from ..arch import Arch
from ..checkpoint import Checkpoint
from ..checkpoint_config import CheckpointConfig
from ..checkpoint_rope import rope_metadata
from ..checkpoint_window import window_metadata
from ..decoder_checkpoint import UNUSED, block_count, decoder_metadata
from ..metadata import Metadata
from ..read_spec import read_spec
from ..read_windows import with_windows
from ..spec import ModelSpec
from .llama import build, tensors

_PERIOD = 4
_BASE = 2e6
_TURNS = "rope.layers"
"""Our own key, an array that says of each layer whether it turns; other programs know the usual period only."""


def read(gguf: GGUFFile, metadata: Metadata) -> ModelSpec:
    """Heads of layers that do not turn know nothing of positions."""
    spec = with_windows(read_spec(gguf, metadata, rope="norm"), metadata)
    turns = _usual(spec.n_layers)
    given = metadata.values.get(metadata.prefix + _TURNS)
    if isinstance(given, np.ndarray) and given.dtype.kind in "biu" and len(given) == spec.n_layers:
        turns = [bool(turn) for turn in given]
    elif given is not None:
        metadata.problem(metadata.prefix + _TURNS, f"wants true or false for each of {spec.n_layers} layers")
    layers = tuple(
        layer if turn else dataclasses.replace(layer, rope=None) for layer, turn in zip(spec.layers, turns, strict=True)
    )
    return dataclasses.replace(spec, layers=layers)


def _usual(n_layers: int) -> list[bool]:
    return [(i + 1) % _PERIOD != 0 for i in range(n_layers)]


def metadata(config: CheckpointConfig) -> dict[str, object]:
    """Layers that turn are listed where they are not the usual ones."""
    keys = decoder_metadata(config) | rope_metadata(config, base=_BASE) | window_metadata(config, used=False)
    n_layers, period = block_count(config), config.integer("no_rope_layer_interval", _PERIOD)
    turns = [turn != 0 for turn in config.integers("no_rope_layers")]
    turns = turns or [(i + 1) % period != 0 for i in range(n_layers)]
    if len(turns) != n_layers:
        config.problem("no_rope_layers", f"has {len(turns)} entries for {n_layers} layers")
    return keys if turns == _usual(n_layers) else keys | {_TURNS: Typed(turns, "bool")}


SMOLLM3 = Arch(read, build, Checkpoint(metadata, tensors, unused=UNUSED))
