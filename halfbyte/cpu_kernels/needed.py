"""`needed_kernels`: which kernels a program runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..model.backend import Weight
from .calls import Call
from .kernels import EXECUTOR
from .packing import packer_of


def needed_kernels(calls: Sequence[Call], matrices: Iterable[Weight]) -> list[str]:
    """Those of its calls, those that pack its matrices, and those of every program; in order of name."""
    return sorted({call.kernel for call in calls} | set(map(packer_of, matrices)) | {*EXECUTOR, "top_k"})
