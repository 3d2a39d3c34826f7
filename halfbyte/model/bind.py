"""`bind`: a file becomes a spec, a program and its weights."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from ..errors import ConfigError, FormatError, UnsupportedError
from ..formats import GGUFFile
from .archs import ARCHS
from .backend import Weight
from .metadata import Metadata
from .program import Program
from .spec import ModelSpec
from .weights import collect_weights

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BoundModel:
    """All a backend needs; `weights` are views of the mapped file and live as long as someone holds them.

    `context` counts the tokens a sequence may have.
    """

    spec: ModelSpec
    program: Program
    weights: dict[str, Weight]
    context: int


def bind(gguf: GGUFFile, context: int | None = None) -> BoundModel:
    """Read, build, check and bind; `context` None means what the model was trained with.

    Raises `FormatError` for metadata or tensors that are missing or contradict each other, `UnsupportedError` for
    architectures and variants we do not have, `ConfigError` for a context below 1.
    """
    if context is not None and context < 1:
        raise ConfigError(f"context must be at least 1 token, not {context}", key="context")
    _refuse_other_files(gguf)
    name = gguf.metadata.get("general.architecture")
    if not isinstance(name, str):
        raise FormatError("general.architecture is missing or no text: this is not a model", path=gguf.path)
    try:
        arch = ARCHS[name]
    except UnsupportedError as error:
        refused = UnsupportedError(f"{gguf.path}: {error}")
        refused.known = error.known
        raise refused from None
    metadata = Metadata(gguf.metadata, name, gguf.path, context)
    spec = arch.read(gguf, metadata)
    metadata.raise_problems()
    if context is not None and context > spec.context_length:
        _log.warning("a context of %d is more than the %d tokens of the model's training", context, spec.context_length)
    program = arch.build(spec, gguf.tensors)
    return BoundModel(spec, program, collect_weights(gguf, program, arch.factors), context or spec.context_length)


def _refuse_other_files(gguf: GGUFFile) -> None:
    """Sound files that have a model's architecture and are none."""
    if gguf.metadata.get("general.type") == "adapter":
        raise FormatError("this is an adapter: load its model with adapters=[this file]", path=gguf.path)
    if not gguf.tensors:
        raise FormatError("has metadata and a tokenizer alone, and no weights to compute with", path=gguf.path)
