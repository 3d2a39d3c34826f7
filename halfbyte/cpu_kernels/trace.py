"""`Trace`: when each thread did what in the steps of a program, from the stamps that the executor writes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..model.backend import WAIT, Span
from .clock import seconds
from .instruction import PASSED, STAMP

MOST_STEPS = 1000
"""Steps that are kept until somebody asks; older ones are forgotten, so that a trace left on does not fill memory."""
_KERNEL_ENDED, _ALL_MET = 0, PASSED // 16


class Trace:
    """Stamps of one program. `labels` name its instructions, `barriers` say behind which all threads meet."""

    def __init__(self, labels: Sequence[str], barriers: Sequence[bool], threads: int) -> None:
        self.stamps: NDArray[np.int64] = np.zeros((threads, len(labels) + 1, STAMP // 16, 2), np.int64)
        self._labels = list(labels)
        self._meets = np.array(barriers, bool) & (threads > 1)
        self._meets[-1] = threads > 1  # a step is over when all have finished
        self._steps: deque[tuple[int, NDArray[np.int64]]] = deque(maxlen=MOST_STEPS)

    def keep(self, step: int) -> None:
        """Keep the stamps of the step that has just run."""
        self._steps.append((step, self.stamps.copy()))

    def take(self) -> list[Span]:
        """Spans of all kept steps, which are forgotten: by step, thread and time."""
        spans = [span for step, stamps in self._steps for span in self._spans(step, seconds(stamps))]
        self._steps.clear()
        return spans

    def _spans(self, step: int, times: NDArray[np.float64]) -> Iterator[Span]:
        ended = times[:, 1:, _KERNEL_ENDED]
        met = np.where(self._meets, times[:, 1:, _ALL_MET], ended)
        began = np.concatenate([times[:, :1, _ALL_MET], met[:, :-1]], axis=1)
        for thread, rows in enumerate(zip(began.tolist(), ended.tolist(), met.tolist(), strict=True)):
            for label, meets, start, end, passed in zip(self._labels, self._meets.tolist(), *rows, strict=True):
                yield Span(label, step, thread, start, end)
                if meets:
                    yield Span(WAIT, step, thread, end, passed)
