"""`encode_rows`: rows of weights into bytes of a format, as near as a search finds."""

from __future__ import annotations

import numpy as np

from ..errors import ConfigError
from .bits import BeyondHalf
from .block import BlockFormat, Bytes, Floats
from .encoder import Search
from .error_weights import error_weights

PIECE = 2**18
"""Weights at a time: what a search keeps of them fits a cache of a core."""


def encode_rows(format: BlockFormat, values: Floats, importance: Floats | None, search: Search) -> Bytes:
    """u8[rows, row_bytes] of f32[rows, M]; `importance` f32[M] is the mean square of what each column is multiplied by.

    Rows do not influence each other. Raises `ConfigError` for a format without an encoder, for NaN and infinity, and
    for weights beyond what the format can hold.
    """
    if format.encoder is None:
        raise ConfigError(f"{format.name} can be read but not written")
    rows, columns = values.shape
    packed = np.empty((rows, format.row_bytes(columns)), dtype=np.uint8)
    step = max(1, PIECE // max(1, columns))
    for start in range(0, rows, step):
        piece = np.ascontiguousarray(values[start : start + step], dtype=np.float32)
        _refuse_unbounded(piece, start)
        weights = error_weights(piece, importance)
        blocks = piece.reshape(-1, format.block_len)
        try:
            part = format.encoder.encode(blocks, weights.reshape(blocks.shape), search)
        except BeyondHalf as error:
            raise error.after(start * columns // format.block_len) from None
        packed[start : start + step] = part.reshape(len(piece), -1)
    return packed


def _refuse_unbounded(values: Floats, first: int) -> None:
    finite = np.isfinite(values)
    if not finite.all():
        row, column = (int(i) for i in np.argwhere(~finite)[0])
        raise ConfigError(
            f"row {first + row} has {float(values[row, column])!r} in column {column}, which no block format can hold; "
            "the source is damaged, or its training diverged"
        )
