"""`PageMover`: carries out what a plan says about pages before its step is computed."""

from __future__ import annotations

import logging

import numpy as np

from ..errors import ResourceError
from ..model.backend import Executable
from .cache.swap_file import SwapFile
from .scheduler import Scheduler
from .sequence import Sequence
from .step import StepPlan

log = logging.getLogger("halfbyte.engine")


class PageMover:
    """Moves pages of an executable: to swap, from page to page, and back from swap."""

    def __init__(self, executable: Executable, swap: SwapFile | None) -> None:
        self._executable = executable
        self._swap = swap
        self._page = np.empty(executable.page_bytes, np.uint8)

    def move(self, plan: StepPlan, scheduler: Scheduler) -> list[tuple[Sequence, ResourceError]]:
        """Make the pages ready; returns the sequences whose pages could not be read back."""
        for sequence, pages in plan.swaps_out:
            self._write(sequence, pages, scheduler)
        for source, target in plan.copies:
            self._executable.copy_page(source, target)
        return [failed for sequence, first in plan.swaps_in.values() if (failed := self._read(sequence, first))]

    def close(self) -> None:
        """Give the disk space back; may be called twice."""
        if self._swap is not None:
            self._swap.close()

    def _write(self, sequence: Sequence, pages: list[int], scheduler: Scheduler) -> None:
        assert self._swap is not None
        try:
            for page, place in zip(pages, sequence.swap, strict=True):
                self._executable.read_page(page, self._page)
                self._swap.write(place, self._page)
        except ResourceError as error:  # no loss: it is computed again
            log.warning("%s", error)
            scheduler.forget_swap(sequence)

    def _read(self, sequence: Sequence, first: int) -> tuple[Sequence, ResourceError] | None:
        assert self._swap is not None
        try:
            for page, place in zip(sequence.pages[first:], sequence.swap[first:], strict=False):
                self._swap.read(place, self._page)
                self._executable.write_page(page, self._page)
        except ResourceError as error:
            return sequence, error
        return None
