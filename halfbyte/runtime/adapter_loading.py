"""`AdapterFile`: what `load` is told of an adapter, and how it comes into a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ConfigError
from ..formats import open_gguf
from ..model import BoundModel
from ..model.adapt import adapt
from ..model.adapter import read_adapter
from .adapters import Adapters, LoadedAdapter, Name, check_scale
from .cache.fingerprint import fingerprint

OneFile = Name | tuple[Name, float]
AdapterFiles = Sequence[OneFile] | Mapping[str, OneFile]
"""As `LoadConfig` has them."""


class AdapterFile(NamedTuple):
    """What `load` is told: a file, how much of it requests get that say nothing, and what it is called, if not as
    the file.
    """

    path: Name
    scale: float = 1.0
    name: str | None = None


def load_adapters(
    files: Sequence[tuple[AdapterFile, Path]], bound: BoundModel, architecture: str
) -> tuple[BoundModel, Adapters]:
    """The model with adapters it can add. Raises `FormatError` and `UnsupportedError` with a file's name."""
    read, loaded = [], list[LoadedAdapter]()
    for given, path in files:
        name = given.name or path.stem
        if name in (adapter.name for adapter in loaded):
            raise ConfigError(
                f'two adapters are called {name!r}: name them, as in adapters={{"{name}": PATH, "other": PATH}}',
                key="adapters",
            )
        with open_gguf(path) as file:
            read.append(read_adapter(file, architecture, bound.program))
            mark = fingerprint(file, isa="", kv="", page_len=0)
        loaded.append(LoadedAdapter(name, path, given.scale, mark))
    return adapt(bound, read), Adapters(loaded)


def adapter_files(given: Any) -> tuple[AdapterFile, ...]:
    """The keyword `adapters` of `load`: paths, pairs of path and scale, or names with either.

    Raises `ConfigError` for anything else.
    """
    if given is None:
        return ()
    if isinstance(given, Mapping):
        if not all(isinstance(name, str) and name for name in given):
            raise ConfigError("adapters: names must be strings that are not empty", key="adapters")
        return tuple(_adapter_file(one)._replace(name=name) for name, one in given.items())
    if isinstance(given, (str, PathLike)) or not isinstance(given, Sequence):
        raise ConfigError(f"adapters must be a list of paths or of (path, scale), not {given!r}", key="adapters")
    return tuple(map(_adapter_file, given))


def _adapter_file(one: Any) -> AdapterFile:
    if isinstance(one, AdapterFile):
        return one
    path, scale = one if isinstance(one, tuple) and len(one) == 2 else (one, 1.0)
    if not isinstance(path, (str, PathLike)) or not str(path):
        raise ConfigError(f"an adapter must be a path or (path, scale), not {one!r}", key="adapters")
    return AdapterFile(path, check_scale(scale))
