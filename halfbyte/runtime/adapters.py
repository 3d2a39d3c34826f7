"""`Adapters`: which adapters a model was loaded with, and what a request wants of them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError, RequestError, nearest
from .sampling.parameters import as_float

MOST = float(np.finfo(np.float32).max)
"""Of a scale."""
Name = str | PathLike[str]
AdapterChoice = Name | Sequence[Name] | Mapping[str, float]
"""Of the adapters a model has: one or several by name or path, with the scales of the load, or names with scales."""


@dataclass(frozen=True)
class AdapterUse:
    """How much of each adapter f32[A] a request wants, None for nothing of any; `seed` is the same where KV is."""

    scales: NDArray[np.float32] | None = None
    seed: bytes = b""
    text: str = ""


NO_ADAPTERS = AdapterUse()


@dataclass(frozen=True)
class LoadedAdapter:
    """`mark` is the same for files that say the same."""

    name: str
    path: Path
    scale: float
    mark: bytes


class Adapters:
    """The adapters of a model, by the numbers its program has for them."""

    def __init__(self, loaded: Sequence[LoadedAdapter] = ()) -> None:
        self.loaded = tuple(loaded)
        self._names = [adapter.name for adapter in loaded]
        self.by_default = self._use([adapter.scale for adapter in loaded])

    def choose(self, choice: AdapterChoice | None) -> AdapterUse:
        """What a request that says `choice` gets; None is the load's scales, an empty list is none.

        Raises `RequestError` for adapters that were not loaded, `ConfigError` for what is no choice.
        """
        if choice is None:
            return self.by_default
        scales = [0.0] * len(self.loaded)
        for at, scale in self._wanted(choice):
            scales[at] = scale
        return self._use(scales)

    def _wanted(self, choice: AdapterChoice) -> Iterator[tuple[int, float]]:
        if isinstance(choice, Mapping):
            for name, scale in choice.items():
                yield self._find(name), check_scale(scale)
            return
        names: Any = [choice] if isinstance(choice, (str, PathLike)) else choice
        if not isinstance(names, Sequence):
            raise ConfigError(f"adapters must be names or a mapping of names to scales, not {choice!r}", key="adapters")
        for name in names:
            at = self._find(name)
            yield at, self.loaded[at].scale

    def _find(self, name: object) -> int:
        if not isinstance(name, (str, PathLike)):
            raise ConfigError(f"an adapter is named by a string or a path, not {name!r}", key="adapters")
        if name in self._names:
            return self._names.index(str(name))
        for at, adapter in enumerate(self.loaded):
            if Path(name) == adapter.path:
                return at
        if not self.loaded:
            raise RequestError(f"adapters: the model was loaded without any; give {str(name)!r} to load(adapters=...)")
        known = ", ".join(self._names)
        raise RequestError(f"adapters: {str(name)!r} was not loaded{nearest(str(name), self._names)}; loaded: {known}")

    def _use(self, scales: Sequence[float]) -> AdapterUse:
        wanted = np.asarray(scales, np.float32)
        if not wanted.any():
            return NO_ADAPTERS
        used = [(adapter, scale) for adapter, scale in zip(self.loaded, wanted.tolist(), strict=True) if scale]
        # Sums are made in the order of the load, and two orders may differ in the last bit.
        marks = b"".join(adapter.mark + struct.pack("<f", scale) for adapter, scale in used)
        text = ", ".join(f"{adapter.name}={scale:g}" for adapter, scale in used)
        return AdapterUse(wanted, blake2b(marks, digest_size=16).digest(), text)


def check_scale(scale: Any) -> float:
    """A number that a float32 holds. Raises `ConfigError`."""
    number = isinstance(scale, Real) and not isinstance(scale, bool)
    if not (number and abs(as_float(scale)) <= MOST):
        raise ConfigError(f"the scale of an adapter must be a finite number, not {scale!r}", key="adapters")
    return float(scale)
