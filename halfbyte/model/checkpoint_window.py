"""From a checkpoint's sliding window to the keys of a GGUF file."""

from __future__ import annotations

from ..formats import Typed
from .checkpoint_config import CheckpointConfig
from .decoder_checkpoint import block_count
from .read_windows import is_usual

_KINDS = ("full_attention", "sliding_attention")


def window_metadata(config: CheckpointConfig, *, used: bool = True, period: int = 0) -> dict[str, object]:
    """The window, and a list of the layers that have it where `with_windows` with this `period` would think otherwise.

    `used`: whether it counts where the config does not say so. Newer configs list the kind of every layer, older ones
    have the first layer with a window, or nothing if it is as usual.
    """
    if not config.has("sliding_window") or not config.flag("use_sliding_window", used):
        return {}
    usual = [is_usual(i, period) for i in range(block_count(config))]
    local = _local(config, usual)
    if not any(local):
        return {}
    window: dict[str, object] = {"attention.sliding_window": config.integer("sliding_window")}
    return window if local == usual else window | {"attention.sliding_window_pattern": Typed(local, "bool")}


def _local(config: CheckpointConfig, usual: list[bool]) -> list[bool]:
    n_layers, kinds = block_count(config), config.texts("layer_types")
    if not kinds:
        first = config.integer("max_window_layers", 0, low=0)
        return [i >= first and windowed for i, windowed in enumerate(usual)]
    odd = sorted(set(kinds) - set(_KINDS))
    if odd or len(kinds) != n_layers:
        said = f"has {odd[0]!r}, known: {', '.join(_KINDS)}" if odd else f"has {len(kinds)} kinds for {n_layers} layers"
        config.problem("layer_types", said)
    return [kind == "sliding_attention" for kind in kinds]
