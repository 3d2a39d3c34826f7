"""`Feedback`: rows into bytes of a format so that the errors of a row make up for each other.

A first walk codes block after block from the left, each column from its weight and what the errors before it ask for.
Sweeps then look at each block again, now with the errors of all others known, and keep per row what costs less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...quant.block import BlockFormat, Bytes, Floats
from ...quant.encoder import Search
from ...quant.walk import Walk
from .feedback_blocks import BlockFeedback
from .feedback_codes import CodeFeedback
from .feedback_rows import Ahead, RowErrors
from .hessian import Hessian

SWEEPS = 1


@dataclass(frozen=True)
class Feedback:
    """`search` fits the scales of a block, `walk` chooses its codes, `sweeps` counts the looks after the first."""

    search: Search
    walk: Walk
    sweeps: int = SWEEPS

    def encode(self, format: BlockFormat, values: Floats, hessian: Hessian) -> Bytes:
        """u8[n, row_bytes] of f32[n, M]; rows do not influence each other.

        Raises `ConfigError` for weights beyond what the format can hold.
        """
        assert format.encoder is not None, f"{format.name} has no encoder"
        coder: Any = (  # which of the two belongs to what it returns is nobody's business here
            BlockFeedback(format, self.search)
            if format.encoder.whole is not None
            else CodeFeedback(format.encoder, self.search, self.walk)
        )
        rows = RowErrors(values, hessian)
        length = format.block_len
        blocks = [slice(start, start + length) for start in range(0, values.shape[1], length)]
        ahead = Ahead(rows, hessian.forward)
        coded = []
        for block in blocks:
            coded.append(coder.first(rows, block, ahead.of(block)))
            ahead.settle(block, coded[-1].values)
        for _ in range(self.sweeps):
            ahead = Ahead(rows, hessian.matrix)
            for i, block in enumerate(blocks):
                coded[i] = _improved(coder, rows, block, ahead.of(block), coded[i])
                ahead.settle(block, coded[i].values)
        return np.concatenate([coder.data(each) for each in coded], axis=1)


def _improved(coder: Any, rows: RowErrors, block: slice, slope: Floats, now: Any) -> Any:
    best, most = now, np.zeros(slope.shape[1], np.float32)
    for other in coder.again(rows, block, slope, now):
        gain = rows.gain(block, slope, other.values)
        best, most = other.where(gain > most, best), np.maximum(gain, most)
    return best
