"""`Arch`: how one architecture is read from metadata and written as a program."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from ..formats import GGUFFile
from .checkpoint import Checkpoint
from .metadata import Metadata
from .program import Program
from .spec import ModelSpec


@dataclass(frozen=True)
class Arch:
    """`read` notes what is wrong in the metadata it is given; `build` is told which tensors the file has.

    `checkpoint` says how a file is made of a checkpoint, `factors` which tensors `read` looks at: no op has them.
    """

    read: Callable[[GGUFFile, Metadata], ModelSpec]
    build: Callable[[ModelSpec, Collection[str]], Program]
    checkpoint: Checkpoint
    factors: tuple[str, ...] = ()
