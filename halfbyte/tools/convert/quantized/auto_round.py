"""auto-round: weights rounded in its own way, and packed as gptq or awq pack theirs."""

from __future__ import annotations

from ....errors import UnsupportedError
from ....model.checkpoint_config import CheckpointConfig
from . import awq, gptq
from .stored import Stored
from .weight import QuantizedWeight

_PACKINGS = {"auto_round:auto_gptq": gptq.weights, "auto_round:auto_awq": awq.weights}


def weights(stored: Stored, config: CheckpointConfig) -> list[QuantizedWeight]:
    """All groups of tensors that are there."""
    packing, kind = config.text("packing_format", "auto_round:auto_gptq"), config.text("data_type", "int")
    config.raise_problems()
    if packing not in _PACKINGS or kind != "int":
        raise UnsupportedError(
            f"{config.path}: its auto-round weights are of type {kind!r} and packed as {packing!r}; convert the "
            "checkpoint that they were made of",
            known=(f"int packed as {name!r}" for name in _PACKINGS),
        )
    return _PACKINGS[packing](stored, config)
