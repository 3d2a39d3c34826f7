"""fp8: weights of 8-bit floats beside their scales, `X_scale_inv` or `X_scale` for a tensor `X`; both multiply."""

from __future__ import annotations

from ....errors import FormatError
from ....model.checkpoint_config import CheckpointConfig
from .float8_weight import WEIGHTS, float8_weight
from .stored import SCALES, Stored, wrong
from .weight import QuantizedWeight

_ENDINGS = ("_scale_inv", "_scale")


def weights(stored: Stored, config: CheckpointConfig) -> list[QuantizedWeight]:
    """All tensors of 8-bit floats."""
    blocks = block_size(config, "weight_block_size")
    found, used = [], set()
    for name, tensor in stored.tensors.items():
        if tensor.dtype not in WEIGHTS or name.endswith(_ENDINGS):
            continue
        scales = [ending for ending in _ENDINGS if name + ending in stored.tensors]
        if len(scales) != 1:
            what = " and ".join(repr(name + ending) for ending in _ENDINGS)
            raise wrong(tensor, f"needs one tensor of scales, of {what} there are {len(scales)}")
        scale = stored.want(name, scales[0], SCALES)
        found.append(float8_weight(stored, tensor, scale, blocks))
        used.add(scale.name)
    refuse_left(stored, ".weight_scale_inv", used)
    refuse_left(stored, ".weight_scale", used)
    return found


def block_size(config: CheckpointConfig, key: str) -> tuple[int, ...]:
    """Rows and columns that share a scale; none where the config does not say."""
    value = config.given.get(key)
    if value is None:
        return ()
    if isinstance(value, list) and len(value) == 2 and all(type(size) is int and 0 < size < 2**31 for size in value):
        return tuple(value)
    config.problem(config.prefix + key, f"wants two sizes, not {value!r:.40}")
    config.raise_problems()
    return ()


def refuse_left(stored: Stored, ending: str, used: set[str]) -> None:
    """Raise `FormatError` for scales whose weight is not there, or is not quantized."""
    for name, tensor in stored.tensors.items():
        if name.endswith(ending) and name not in used:
            raise FormatError(
                f"has scales {name!r} without a quantized weight that they belong to: fetch the checkpoint again",
                path=tensor.path,
            )
