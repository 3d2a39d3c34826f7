"""`Chooser`: the best of logits that were made elsewhere."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import ResourceError
from . import isa as isas
from . import threads as teams
from .kernels import EXECUTOR
from .loader import LoadedKernels
from .selection import Best, Selection


class Chooser:
    """Of a program that the CPU has no op of, what is left to do. One thread at a time may use it.

    It is that thread which chooses: a row takes it microseconds, and threads that slept while a GPU computed a step
    take half a millisecond to wake.
    """

    def __init__(self, isa: str | None = None) -> None:
        """Raises `ConfigError` for an isa there is not, `UnsupportedError` for one that this machine lacks."""
        self._kernels = LoadedKernels(isas.detect() if isa is None else isas.named(isa), sorted({*EXECUTOR, "top_k"}))
        self._team = teams.Team(1, self._kernels)
        weakref.finalize(self, self._team.dismiss)
        self._selection = Selection(self._kernels.addresses["top_k"])
        self._closed = False
        self._lock = threading.Lock()

    def top_k_rows(
        self, logits: NDArray[np.float32], ks: Sequence[int], peaks: NDArray[np.float32] | None = None
    ) -> list[Best | None]:
        """The `ks[r]` best of each row of f32[R, V], None for 0; `peaks` are those of the rows' tiles."""
        with self._lock:
            if self._closed:
                raise ResourceError("this model is closed; load it again")
            return self._selection.rows(self._team, logits, ks, peaks)

    def info(self) -> dict[str, str | int]:
        """Facts for people."""
        return {"isa": self._kernels.isa.name, "threads": self._team.threads}

    def close(self) -> None:
        """Stop the threads; may be called twice."""
        with self._lock:
            self._closed = True
            self._team.close()
