"""`GuardedExecutable`: an executable that looks after the file it reads from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..model.backend import Executable, OwnsLogits
from ..model.program import StepBatch


class GuardedExecutable:
    """Runs `check` before every step, which raises where memory that the step reads has gone.

    A mapped file that somebody cuts short takes its pages along, and the system ends a process that touches them. The
    check costs about a microsecond; a cut in the middle of a step stays possible.
    """

    def __init__(self, inner: Executable, check: Callable[[], None]) -> None:
        self.page_len, self.n_pages, self.page_bytes = inner.page_len, inner.n_pages, inner.page_bytes
        self._inner, self._check = inner, check
        self.top_k, self.top_k_rows, self.tapped = inner.top_k, inner.top_k_rows, inner.tapped
        self.copy_page, self.expect = inner.copy_page, inner.expect
        self.read_page, self.write_page = inner.read_page, inner.write_page
        self.trace, self.spans = inner.trace, inner.spans
        self.info, self.close = inner.info, inner.close
        if isinstance(inner, OwnsLogits):
            self.logits_memory = inner.logits_memory

    def run(self, batch: StepBatch, logits: NDArray[np.float32]) -> None:
        """Run one step; raises `FormatError` where the model's file is no longer whole."""
        self._check()
        self._inner.run(batch, logits)
