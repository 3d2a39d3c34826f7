"""`DirectKernels`: compiled kernels for work beside a model's step, each call run by the thread that makes it."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

import numpy as np

from ..model.backend import Progress
from . import isa as isas
from .instruction import LAYOUTS, WORDS
from .loader import LoadedKernels

_KERNEL = ctypes.CFUNCTYPE(None, *[ctypes.c_longlong] * 4)


class DirectKernels:
    """Any thread may call, several at once: a call holds nothing but its own operands and releases Python's lock."""

    def __init__(self, names: Sequence[str], isa: str | None = None, progress: Progress | None = None) -> None:
        chosen = isas.detect() if isa is None else isas.named(isa)
        self._kernels = LoadedKernels(chosen, sorted(names), progress)
        self._functions = {name: _KERNEL(address) for name, address in self._kernels.addresses.items()}

    def call(self, kernel: str, layout: str, operands: Mapping[str, int]) -> None:
        """Run one kernel; addresses among the operands must stay alive meanwhile."""
        words = np.zeros(WORDS, np.int64)
        given = LAYOUTS[layout].words(operands)
        words[3 : 3 + len(given)] = given
        self._functions[kernel](words.ctypes.data, 0, 0, 1)
