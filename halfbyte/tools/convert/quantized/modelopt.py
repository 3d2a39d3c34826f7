"""modelopt: 8-bit floats as in fp8, or pairs of 4-bit floats `weight` with `weight_scale` and `weight_scale_2`."""

from __future__ import annotations

from ....errors import UnsupportedError
from ....model.checkpoint_config import CheckpointConfig
from .float8_weight import WEIGHTS, float8_weight
from .nvfp4_weight import nvfp4_weight
from .stored import SCALES, Stored, wrong
from .weight import QuantizedWeight

_ALGORITHMS = ("FP8", "NVFP4", "MIXED_PRECISION")
_PARTS = ((".weight_scale", SCALES), (".weight", (*WEIGHTS, "U8")))


def weights(stored: Stored, config: CheckpointConfig) -> list[QuantizedWeight]:
    """All weights that have scales."""
    _refuse_other(config)
    found = []
    for stem in stored.stems(".weight_scale", ".weight_scale_2"):
        scale, weight = (stored.want(stem, ending, types) for ending, types in _PARTS)
        if weight.dtype != "U8":
            found.append(float8_weight(stored, weight, scale, ()))
        elif scale.dtype == "F8_E4M3":
            outer = stored.want(stem, ".weight_scale_2", ("F32",))
            found.append(nvfp4_weight(stored, weight.name, weight, scale, outer, divides=False))
        else:
            raise wrong(scale, f"is of type {scale.dtype}, but scales of 4-bit floats are F8_E4M3")
    for name, tensor in stored.tensors.items():
        if tensor.dtype in WEIGHTS and name.endswith(".weight") and f"{name}_scale" not in stored.tensors:
            raise wrong(tensor, "has no scales")
    return found


def _refuse_other(config: CheckpointConfig) -> None:
    algorithm = config.text("quant_algo", config.section("quantization").text("quant_algo", "FP8"))
    config.raise_problems()
    if algorithm not in _ALGORITHMS:
        raise UnsupportedError(
            f"{config.path}: its weights are quantized by modelopt's {algorithm!r}; convert the checkpoint that they "
            "were made of",
            known=_ALGORITHMS,
        )
