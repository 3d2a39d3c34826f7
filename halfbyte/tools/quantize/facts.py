"""`facts_of`: what recipes ask about a model, from the metadata of its file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import FormatError
from ...formats import GGUFFile
from ...quant.recipe import ModelFacts


def facts_of(file: GGUFFile, *, calibrated: bool = False) -> ModelFacts:
    """The architecture need not be one that we can run. Raises `FormatError` for a file that names none."""
    arch = file.metadata.get("general.architecture")
    if not isinstance(arch, str):
        raise FormatError("names no architecture, so it is no model that could be quantized", path=file.path)
    return facts_from(file.metadata, arch, calibrated=calibrated)


def facts_from(metadata: Mapping[str, object], arch: str, *, calibrated: bool = False) -> ModelFacts:
    """The same of metadata that no file has yet."""
    heads = _count(metadata.get(f"{arch}.attention.head_count"), 0)
    shared = _count(metadata.get(f"{arch}.attention.head_count_kv"), heads)
    return ModelFacts(
        arch=arch,
        n_layers=_count(metadata.get(f"{arch}.block_count"), 0),
        n_experts=_count(metadata.get(f"{arch}.expert_count"), 0),
        gqa=heads // shared if shared > 0 else 0,
        calibrated=calibrated,
    )


def _count(value: Any, default: int) -> int:
    """A count, or the first of those given for each layer."""
    value = getattr(value, "value", value)  # of a `Typed`
    if hasattr(value, "__getitem__") and not isinstance(value, str) and len(value):
        value = value[0].item() if hasattr(value[0], "item") else value[0]
    return int(value) if isinstance(value, int | float) else default
