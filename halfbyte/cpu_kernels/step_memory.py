"""`StepMemory`: what the buffers of a step take, before they have a place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..model.backend import Weight
from ..model.program import RopeTable
from .arena import rounded
from .calls import Angles, Call, Operand, Scratch
from .instruction import PARTIAL_BYTES
from .place import Plan
from .weight_roles import vectors_of


@dataclass(frozen=True)
class StepMemory:
    """Bytes of each kind: `scratch` of a thread, what threads have `together`, `angles` by table; `total` is the arena
    that holds it all with the values of `plan` and the `vectors` that kernels read as they are.
    """

    scratch: int
    together: int
    angles: dict[RopeTable, int]
    vectors: Mapping[str, NDArray[np.float32]]
    total: int


def step_memory(plan: Plan, weights: Mapping[str, Weight], threads: int, max_tokens: int) -> StepMemory:
    """For steps of up to `max_tokens` tokens on `threads` threads."""
    operands = list(operands_of(plan.lowering.calls))
    angles = {op.table: 8 * max_tokens * len(op.table.inv_freq) for op in operands if isinstance(op, Angles)}
    scratch = rounded(max((op.n_bytes for op in operands if isinstance(op, Scratch)), default=64))
    vectors = vectors_of(plan.lowering.program, weights)
    together = threads * (64 + PARTIAL_BYTES)
    total = sum(map(rounded, plan.sizes)) + rounded(scratch * threads) + rounded(together) + 256
    total += sum(rounded(vector.nbytes + 128) for vector in vectors.values())
    total += sum(rounded(n_bytes) + rounded(8 * len(table.inv_freq)) for table, n_bytes in angles.items())
    return StepMemory(scratch, together, angles, vectors, total)


def operands_of(calls: Sequence[Call]) -> Iterator[Operand]:
    """Of all calls, in their order."""
    for call in calls:
        yield from call.operands.values()
