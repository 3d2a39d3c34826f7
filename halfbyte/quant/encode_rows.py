"""`encode_rows`: rows of weights into bytes of a format, as near as a search finds."""

from __future__ import annotations

import numpy as np

from ..errors import ConfigError
from .bits import BeyondHalf
from .block import BlockFormat, Bytes, Floats
from .bounds import first_unbounded
from .encoder import Search
from .error_weights import error_weights

PIECE = 2**18
"""Weights at a time: what a search keeps of them fits a cache of a core."""


def encode_rows(format: BlockFormat, values: Floats, importance: Floats | None, search: Search) -> Bytes:
    """u8[rows, row_bytes] of f32[rows, M]; `importance` f32[M] is the mean square of what each column is multiplied by.

    Rows do not influence each other. Raises `ConfigError` for a format without an encoder, for NaN and infinity, for
    weights beyond what the format can hold, and for an importance of other columns or one that no mean square can be.
    """
    if format.encoder is None:
        raise ConfigError(f"{format.name} can be read but not written")
    rows, columns = values.shape
    packed = np.empty((rows, format.row_bytes(columns)), dtype=np.uint8)
    if importance is not None:
        _check_importance(importance, columns)
    if not values.size:
        return packed
    step = max(1, PIECE // columns)
    for start in range(0, rows, step):
        with np.errstate(over="ignore"):  # infinity is refused below
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


def _check_importance(importance: Floats, columns: int) -> None:
    """NaN would make every scale a zero, and a number too few counts for all columns, both without a word."""
    if importance.shape != (columns,):
        raise ConfigError(f"the importance has shape {list(importance.shape)}, the rows have {columns} columns")
    if not (np.isfinite(importance).all() and (importance >= 0).all()):
        raise ConfigError("the importance has NaN, infinity or negative numbers, which no mean square is")


def _refuse_unbounded(values: Floats, first: int) -> None:
    place = first_unbounded(values)
    if place is not None:
        raise ConfigError(
            f"row {first + place[0]} has {float(values[place])!r} in column {place[1]}, which no block format can "
            "hold; the source is damaged, or its training diverged"
        )
