"""`Checkpoint`: how one architecture's Hugging Face checkpoint becomes the metadata and tensors of a GGUF file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .checkpoint_config import CheckpointConfig

Floats = NDArray[np.float32]
Choice = Callable[[int], NDArray[np.intp]]
"""Of so many rows or columns, which ones, in which order."""


@dataclass(frozen=True)
class TensorRule:
    """How one tensor of the file is made of tensors of the checkpoint.

    Of tensors of more than two dimensions those of size 1 are dropped; what is left of three are matrices, [E, N, M].
    `stacked`: `sources` are the matrices of one tensor [E, N, M], or vectors of one [E, N]; else there is one source.
    `transposed`: the checkpoint has each matrix as [M, N]. `rows` and `columns` choose of each matrix, by the shape it
    has then; `change` is made to float32 values, whichever rows they are. `optional`: a checkpoint may do without.
    """

    target: str
    sources: tuple[str, ...]
    stacked: bool = False
    transposed: bool = False
    rows: Choice | None = None
    columns: Choice | None = None
    change: Callable[[Floats], Floats] | None = None
    optional: bool = False


def plus_one(values: Floats) -> Floats:
    """For norms that are kept as their distance from one."""
    return values + np.float32(1)


def no_tensors(config: CheckpointConfig) -> dict[str, Floats]:
    """Nothing is computed."""
    return {}


@dataclass(frozen=True)
class Checkpoint:
    """Of a config: `metadata` gives the values of `<arch>.<key>` by key, `tensors` a rule for each tensor.

    `computed` are tensors that no weights go into. `unused`: patterns of tensors that say nothing new. Values are as
    `GGUFWriter` takes them. What is wrong with the config is noted in it.
    """

    metadata: Callable[[CheckpointConfig], Mapping[str, object]]
    tensors: Callable[[CheckpointConfig], list[TensorRule]]
    computed: Callable[[CheckpointConfig], Mapping[str, Floats]] = no_tensors
    unused: tuple[str, ...] = ()
