"""`plain_source`: a quantized checkpoint as if its weights were plain."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ....errors import FormatError, UnsupportedError
from ....model.checkpoint_config import CheckpointConfig
from ..tensor_source import SourceTensor, TensorSource
from .methods import METHODS
from .stored import Stored
from .weight import QuantizedWeight

_SECTIONS = ("quantization_config", "compression_config")
_SIGNS = re.compile(r".*(\.qweight|\.weight_packed|\.weight_scale|_scale_inv|_proj_blocks|\.absmax)")
"""Names that only tensors of quantized checkpoints have."""
_OF_ACTIVATIONS = re.compile(
    r".*\.((input|output|activation)_(scale|scale_inv|scale_ub|zero_point|global_scale)|[qkv]_(scale|zero_point))"
)
"""How activations and keys and values are rounded at run time: says nothing of the weights."""


class PlainSource:
    """A `TensorSource` in which each quantized weight is one tensor, decoded as it is read."""

    def __init__(self, source: TensorSource, weights: Sequence[QuantizedWeight]) -> None:
        self._source = source
        self._weights = {weight.tensor.name: weight for weight in weights}
        at = {weight.members[0]: weight.tensor for weight in weights}
        members = {name for weight in weights for name in weight.members}
        self.tensors: dict[str, SourceTensor] = {}
        for name, tensor in source.tensors.items():
            if name in at:
                self.tensors[at[name].name] = at[name]
            elif name in self._weights and name not in members:
                raise FormatError(
                    f"has {name!r} beside its quantized form {self._weights[name].members[0]!r}: which one counts?",
                    path=tensor.path,
                )
            elif name not in members and not _OF_ACTIVATIONS.fullmatch(name):
                self.tensors[name] = tensor

    def read(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Entries `start` to `stop` - 1 of the first dimension."""
        weight = self._weights.get(name)
        if weight is None:
            return self._source.read(name, start, stop)
        return weight.rows(start, weight.tensor.shape[0] if stop is None else stop)


def plain_source(source: TensorSource, config: Mapping[str, object]) -> TensorSource:
    """The same source for a checkpoint that is not quantized.

    Raises `UnsupportedError` for a method that we do not know, `FormatError` for settings and tensors that do not fit.
    """
    settings = _settings(config, _config_path(source))
    if settings is None:
        _refuse_quantized(source)
        return source
    name = _method_name(settings)
    if name not in METHODS:
        raise UnsupportedError(
            f"{settings.path}: its weights are quantized by {name!r}, which we cannot read; convert the checkpoint "
            "that it was made of, which has them in bf16 or f16",
            known=METHODS,
        )
    return PlainSource(source, METHODS[name](Stored(source), settings))


def _config_path(source: TensorSource) -> Path:
    folders = (tensor.path.parent for tensor in source.tensors.values())
    return next(folders, Path()) / "config.json"


def _settings(config: Mapping[str, object], path: Path) -> CheckpointConfig | None:
    """Where the config has them: models of several parts may have them in that for text."""
    whole = CheckpointConfig(config, path)
    for place in (whole, whole.section("text_config")):
        if any(place.has(key) for key in _SECTIONS):
            section = place.section(*_SECTIONS)
            section.raise_problems()
            return section
    return None


def _method_name(settings: CheckpointConfig) -> str:
    if settings.given.get("load_in_4bit") is True or settings.given.get("load_in_8bit") is True:
        return "bitsandbytes"
    name = settings.text("quant_method", "")
    if not name:
        settings.problem(f"{settings.prefix}quant_method", "is missing")
    settings.raise_problems()
    return name.lower()


def _refuse_quantized(source: TensorSource) -> None:
    for name, tensor in source.tensors.items():
        if _SIGNS.fullmatch(name):
            raise FormatError(
                f"tensor {name!r} belongs to a quantized weight, but config.json has no quantization_config that says "
                "how to read it: take the config.json that belongs to these weights",
                path=tensor.path,
            )
