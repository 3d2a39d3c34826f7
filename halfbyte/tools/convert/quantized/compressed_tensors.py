"""compressed-tensors: integers packed or one to a byte, 8-bit floats, 4-bit floats; which, the tensors tell."""

from __future__ import annotations

from ....errors import FormatError, UnsupportedError
from ....model.checkpoint_config import CheckpointConfig
from .float8_weight import WEIGHTS, float8_weight
from .integer_weight import byte_weight, packed_weight
from .mxfp4_weight import mxfp4_weight
from .nvfp4_weight import nvfp4_weight
from .scheme import Scheme, scheme_for, schemes_of
from .stored import SCALES, Stored, wrong
from .weight import QuantizedWeight

_FORMATS = (
    "dense",
    "float-quantized",
    "int-quantized",
    "naive-quantized",
    "pack-quantized",
    "nvfp4-pack-quantized",
    "mxfp4-pack-quantized",
    "mxfp8-quantized",
    "mixed-precision",
)
_ENDINGS = (".weight_packed", ".weight_scale", ".weight_shape", ".weight_zero_point", ".weight_g_idx")
_OUTER = ".weight_global_scale"


def weights(stored: Stored, config: CheckpointConfig) -> list[QuantizedWeight]:
    """All groups of tensors that are there."""
    _refuse_other(config)
    schemes = schemes_of(config)
    found = []
    for stem in stored.stems(*_ENDINGS, _OUTER):
        scheme = scheme_for(stem, schemes, config)
        packed = f"{stem}.weight_packed" in stored.tensors
        found.append(_packed(stored, stem, scheme, config) if packed else _unpacked(stored, stem, scheme))
    scaled = {weight.tensor.name for weight in found}
    for name, tensor in stored.tensors.items():
        if tensor.dtype in (*WEIGHTS, "I8") and name.endswith(".weight") and name not in scaled:
            raise wrong(tensor, f"is of type {tensor.dtype}, but has no scales")
    return found


def _refuse_other(config: CheckpointConfig) -> None:
    formats = [config.text("format", "dense"), config.section("sparsity_config").text("format", "dense")]
    groups = config.section("config_groups")
    formats += [groups.section(key).text("format", "dense") for key in groups.given]
    config.raise_problems()
    for name in formats:
        if name not in _FORMATS:
            raise UnsupportedError(
                f"{config.path}: its weights are compressed as {name!r}; convert the checkpoint that they were made of",
                known=_FORMATS,
            )


def _packed(stored: Stored, stem: str, scheme: Scheme, config: CheckpointConfig) -> QuantizedWeight:
    packed = stored.want(stem, ".weight_packed", ("I32", "U8"))
    scale = stored.want(stem, ".weight_scale", SCALES)
    name = f"{stem}.weight"
    if packed.dtype == "I32":
        return packed_weight(stored, stem, scheme, config)
    if f"{stem}{_OUTER}" in stored.tensors:
        if scale.dtype != "F8_E4M3":
            raise wrong(scale, f"is of type {scale.dtype}, not F8_E4M3")
        outer = stored.want(stem, _OUTER, ("F32",))
        return nvfp4_weight(stored, name, packed, scale, outer, divides=True)
    if scale.dtype not in ("U8", "F8_E8M0"):
        raise wrong(scale, f"is of type {scale.dtype}, and {stem + _OUTER!r}, which should be beside it, is missing")
    return mxfp4_weight(stored, name, packed, scale)


def _unpacked(stored: Stored, stem: str, scheme: Scheme) -> QuantizedWeight:
    weight = stored.want(stem, ".weight", (*WEIGHTS, "I8"))
    scale = stored.want(stem, ".weight_scale", SCALES)
    if weight.dtype == "I8":
        return byte_weight(stored, stem, scheme)
    if f"{stem}.weight_zero_point" in stored.tensors:
        raise FormatError(f"has a zero for {weight.name!r}, whose numbers are floats", path=weight.path)
    return float8_weight(stored, weight, scale, scheme.blocks)
