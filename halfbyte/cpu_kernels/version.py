"""`Version`: the instructions of a program for steps that want the same adapters."""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from itertools import pairwise

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


class Part:
    """The instructions of calls `start` to `stop` - 1."""

    def __init__(self, placed: Placed, start: int, stop: int, threads: int) -> None:
        self.words = placed.words[start:]
        self.length = stop - start
        labels = [call.label for call in placed.calls[start:stop]]
        self.trace = Trace(labels, placed.barriers[start:stop], threads) if labels else None


class Version:
    """What runs, where it writes the logits, and what it selects of them along with it.

    `parts` run one after the other, up to the calls for ops of the numbers `ends`.
    """

    def __init__(self, placed: Placed, kernels: Kernels, threads: int, ends: Sequence[int]) -> None:
        self.placed = placed
        self.along = Selection(kernels["top_k"], placed.words[placed.length :])
        cuts = [0, *(bisect_left(placed.calls, end, key=lambda call: call.op) for end in ends), placed.length]
        self.parts = [Part(placed, start, stop, threads) for start, stop in pairwise(cuts)]
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

    def __init__(self, whole: Placed, kernels: Kernels, threads: int, ends: Sequence[int] = ()) -> None:
        self._whole, self._kernels, self._threads, self._ends = whole, kernels, threads, ends
        self._adapters = sorted({call.adapter for call in whole.calls if call.adapter is not None})
        whole.assemble(kernels)
        self.whole = Version(whole, kernels, threads, ends)
        self._found = OrderedDict({tuple(self._adapters): self.whole})

    def of(self, scales: NDArray[np.float32] | None) -> Version:
        """For a step whose sequences want so much of each adapter, f32[S, A]."""
        if not self._adapters:
            return self.whole
        used = () if scales is None else tuple(np.flatnonzero(scales.any(axis=0)).tolist())
        if used not in self._found:
            placed = self._whole.with_adapters(used, self._kernels)
            self._found[used] = Version(placed, self._kernels, self._threads, self._ends)
            if len(self._found) > MOST:
                self._found.popitem(last=False)
        self._found.move_to_end(used)
        return self._found[used]

    def spans(self) -> list[Span]:
        """What their traces hold, which is forgotten: by step, thread and time."""
        traces = [part.trace for version in self._found.values() for part in version.parts]
        spans = [span for trace in traces if trace is not None for span in trace.take()]
        return sorted(spans, key=lambda span: (span.step, span.thread))
