"""`Served`: the models behind a server, and the names by which clients ask for them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..errors import ConfigError, nearest
from ..runtime.embedder import Embedder
from ..runtime.llm import LLM
from .errors import ApiError, invalid
from .fields import Fields, shown

SEPARATOR = ":"
"""Between a model's name and an adapter's: together they are a model of their own to a client."""


@dataclass(frozen=True)
class Served:
    """A model that writes, one that makes vectors, or both. Names are what `/v1/models` lists."""

    llm: LLM | None = None
    name: str = "model"
    embedder: Embedder | None = None
    embedder_name: str = "embedder"
    created: int = field(default_factory=lambda: int(time.time()))

    def __post_init__(self) -> None:
        if self.llm is None and self.embedder is None:
            raise ConfigError("a server needs a model: give an LLM, an embedder, or both")
        if self.llm is not None and self.embedder is not None and self.name == self.embedder_name:
            raise ConfigError(f"both models are named {self.name!r}: give one another name", key="name")

    def writer(self, model: str | None) -> Choice:
        """The model that writes, as `model` asks for it; None is the one there is.

        Raises `ApiError` for an unknown name, and where there is none that writes.
        """
        if self.llm is None:
            raise invalid("this server has no model that writes texts, only one for /v1/embeddings", "model", None)
        if model is None or model == self.name:
            return Choice(self.llm, self.name, None)
        for adapter in self.llm.adapters:
            if model == f"{self.name}{SEPARATOR}{adapter}":
                return Choice(self.llm, model, adapter)
        raise self._unknown(model)

    def vectors(self, model: str | None) -> tuple[Embedder, str]:
        """The model that makes vectors. Raises as `writer`."""
        if self.embedder is None:
            raise invalid(
                f"this server has no model that makes vectors: {self.name!r} writes texts; serve an embedding model "
                "(BERT and its kin) too",
                "model",
                "unsupported_model",
            )
        if model is not None and model != self.embedder_name:
            raise self._unknown(model)
        return self.embedder, self.embedder_name

    def names(self) -> Iterator[str]:
        """All that a client may ask for."""
        if self.llm is not None:
            yield self.name
            yield from (f"{self.name}{SEPARATOR}{adapter}" for adapter in self.llm.adapters)
        if self.embedder is not None:
            yield self.embedder_name

    def _unknown(self, model: str) -> ApiError:
        known = list(self.names())
        hint = nearest(model, known) or f"; there are: {', '.join(known)}"
        return ApiError(404, f"there is no model {shown(model)}{hint}", param="model", code="model_not_found")


@dataclass(frozen=True)
class Choice:
    """A model under the name it was asked by; `adapter` is the one that the name says."""

    llm: LLM
    name: str
    adapter: str | None

    def adapters(self, fields: Fields) -> dict[str, Any]:
        """The option for adapters: those of the name, or the field `adapters`, which is not OpenAI's.

        It is a name, a list of names, or an object from names to scales. Raises `ApiError`.
        """
        asked = fields.take("adapters")
        if self.adapter is not None and asked is not None:
            raise invalid(f"the model {self.name!r} names an adapter already: leave out one of the two", "adapters")
        chosen = asked if self.adapter is None else self.adapter
        if chosen is None:
            return {}
        names = [chosen] if isinstance(chosen, str) else chosen
        if not isinstance(names, (list, dict)) or not all(isinstance(name, str) for name in names):
            raise fields.wrong("adapters", "a name, a list of names, or an object from names to scales", asked)
        for name in names:
            # The library would take paths too; a client is not to find out which files there are.
            if name not in self.llm.adapters:
                known = nearest(name, self.llm.adapters) or f"; there are: {', '.join(self.llm.adapters) or 'none'}"
                raise invalid(f"adapters: there is no {shown(name)}{known}", "adapters", "adapter_not_found")
        return {"adapters": chosen}
