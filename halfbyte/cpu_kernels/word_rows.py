"""`WordRows`: embeddings in formats that no kernel decodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from ..model.backend import Weight
from ..model.program import Embed, Program, StepBatch
from .place import Placed


class WordRows:
    """Decodes the rows of a step's words where the table is none of those that kernels read."""

    def __init__(
        self, program: Program, weights: Mapping[str, Weight], tables: Collection[str], placed: Placed
    ) -> None:
        ops = [op for op in program.ops if isinstance(op, Embed) and op.table not in tables]
        self._rows = [(weights[op.table], np.float32(op.scale), placed.view(op.out)) for op in ops]

    def put(self, batch: StepBatch) -> None:
        """Write those of a step."""
        for table, scale, out in self._rows:
            rows = table.format.decode(table.data[batch.ids])
            np.multiply(rows, scale, out=out[: len(batch.ids), : table.shape[1]])
