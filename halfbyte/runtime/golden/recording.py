"""`record`: golden vectors into a file that is being written.

metadata = {**metadata, **room(len(tensors))}
with GGUFWriter(path, metadata) as writer:
    ...  # declare and write all tensors
    record(writer)
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import HalfbyteError
from ...formats import GGUFFile
from ...model import bind
from ...model.backend import Progress
from .asking import ask, tokenizer_of
from .vectors import blank, room, without

__all__ = ["Writer", "leave_blank", "record", "room", "runs", "without"]

_log = logging.getLogger(__name__)


class Writer(Protocol):
    """What `GGUFWriter` is, and whoever writes a model in parts."""

    @property
    def sums(self) -> Mapping[str, int]:
        """CRC-32 of the bytes of each tensor."""

    def look(self) -> GGUFFile:
        """The model as it will be."""

    def fill(self, key: str, values: Sequence[object] | NDArray[Any]) -> None:
        """Give a reserved array its values."""


def record(writer: Writer, progress: Progress | None = None) -> None:
    """Compute golden vectors of the file that `writer` has all tensors of, and put them where `room` reserved them.

    To be called before the file is closed. Memory is a few megabytes; see `ask` for the time. `progress` is told of
    bytes of the new file as "reference". Raises what `bind` raises where the file is no model that runs.
    """
    with writer.look() as file:
        golden = ask(file, progress, writer.sums)
    if not np.isfinite(golden.rows.distances(golden.rows)).all():
        _log.warning("%s: what the model answers is not a number: its weights are damaged, or too large", file.path)
    for key, values in golden.values().items():
        writer.fill(key, values)


def runs(file: GGUFFile) -> bool:
    """Whether golden vectors of a file like this one can be computed: it has a model that we know."""
    try:
        bind(file)
        tokenizer_of(file)
    except HalfbyteError as error:
        _log.info("%s: no golden vectors, since it cannot be run here: %s", file.path, error)
        return False
    return True


def leave_blank(writer: Writer) -> None:
    """Say in the place of golden vectors that there are none."""
    with writer.look() as file:
        n_tensors = len(file.tensors)
    for key, values in blank(n_tensors).items():
        writer.fill(key, values)
