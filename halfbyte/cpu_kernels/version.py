"""`Version`: the instructions of a program for steps that want the same adapters."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..model.backend import Span
from .instruction import BARRIER
from .loader import Kernels
from .place import Placed
from .selection import Selection
from .trace import Trace

MOST = 32
"""Versions that are kept: a step of others takes a few milliseconds longer."""


class Version:
    """What runs, where it writes the logits, and what it selects of them along with it."""

    def __init__(self, placed: Placed, kernels: Kernels, threads: int) -> None:
        self.placed = placed
        self.along = Selection(kernels["top_k"], placed.words[placed.length :])
        self.trace = Trace([call.label for call in placed.calls], placed.barriers, threads)
        self._flat = placed.words.reshape(-1)
        self._logits: NDArray[np.float32] | None = None

    def point_to(self, logits: NDArray[np.float32]) -> None:
        """Let the logits be written there."""
        if logits is not self._logits:
            self._logits = logits
            self._flat[self.placed.logits_at] = logits.ctypes.data

    def select_along(self, logits: NDArray[np.float32], ks: Sequence[int], peaks: NDArray[np.float32]) -> int:
        """Instructions behind the program that select the `ks[r]` best of each row, if any; how many."""
        along = self.along.begin(logits, ks, peaks) if ks else 0
        # All logits must be there before any are selected from.
        self.placed.words[self.placed.length - 1, BARRIER // 8] = along > 0
        return along


class Versions:
    """The version of each set of adapters that a step has wanted. `whole` has all of them."""

    def __init__(self, whole: Placed, kernels: Kernels, threads: int) -> None:
        self._whole, self._kernels, self._threads = whole, kernels, threads
        self._adapters = sorted({call.adapter for call in whole.calls if call.adapter is not None})
        whole.assemble(kernels)
        self.whole = Version(whole, kernels, threads)
        self._found = OrderedDict({tuple(self._adapters): self.whole})

    def of(self, scales: NDArray[np.float32] | None) -> Version:
        """For a step whose sequences want so much of each adapter, f32[S, A]."""
        if not self._adapters:
            return self.whole
        used = () if scales is None else tuple(np.flatnonzero(scales.any(axis=0)).tolist())
        if used not in self._found:
            placed = self._whole.with_adapters(used, self._kernels)
            self._found[used] = Version(placed, self._kernels, self._threads)
            if len(self._found) > MOST:
                self._found.popitem(last=False)
        self._found.move_to_end(used)
        return self._found[used]

    def spans(self) -> list[Span]:
        """What their traces hold, which is forgotten: by step, thread and time."""
        spans = [span for version in self._found.values() for span in version.trace.take()]
        return sorted(spans, key=lambda span: span.step)
