"""`encode`: rows as a checkpoint stores them, as bytes of their new format, and what that lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...quant import BlockFormat
from ...quant.bf16_to_f16 import bf16_to_f16
from ...quant.block import Bytes
from ...quant.encode_rows import encode_rows
from ...quant.encoder import Search
from .report import Loss, loss_of
from .values import Floats, as_floats

Rows = NDArray[Any]
Encoded = tuple[Bytes, Loss]
_EXPONENT = {"BF16": np.uint16(0x7F80), "F16": np.uint16(0x7C00)}
"""Bits that are all set in infinity and NaN only."""
_INFINITE = np.uint16(0x7C00)
_CACHED = 2**17
"""Weights at a time that stay in a core's cache."""


class Unbounded(Exception):
    """The rows hold NaN or infinity; never leaves the converter."""


class Overflow(Exception):
    """The rows hold numbers that the new format cannot; never leaves the converter."""


def encode(rows: Rows, dtype: str, format: BlockFormat, search: Search) -> Encoded:
    """u8 bytes of rows [n, M] of a source type."""
    way = DIRECT.get((dtype, format.name))
    return encode_floats(rows, dtype, format, search) if way is None else way(rows, dtype)


def encode_floats(
    rows: Rows, dtype: str, format: BlockFormat, search: Search, change: Callable[[Floats], Floats] | None = None
) -> Encoded:
    """The same through float32, where `change` is made, in runs that stay in the cache."""
    step = max(1, _CACHED // max(1, rows.shape[-1]))
    parts, loss = [], Loss()
    for start in range(0, len(rows), step):
        values = as_floats(rows[start : start + step], dtype)
        if change is not None:
            values = change(values)
        if not np.isfinite(values).all():
            raise Unbounded
        parts.append(encode_rows(format, values, None, search) if format.encoder else format.encode(values))
        if format.name != "f32":
            loss = loss.plus(loss_of(values, format.decode(parts[-1])))
            if not np.isfinite(loss.largest):
                raise Overflow
    return np.concatenate(parts), loss


def _same_words(rows: Rows, dtype: str) -> Encoded:
    """Nothing changes."""
    if dtype in _EXPONENT:
        words = rows.view(np.uint16)
        if ((words & _EXPONENT[dtype]) == _EXPONENT[dtype]).any():
            raise Unbounded
    elif not np.isfinite(rows).all():
        raise Unbounded
    return rows.view(np.uint8), Loss()


def _wider(rows: Rows, dtype: str) -> Encoded:
    """Every half is a float32."""
    values = as_floats(rows, dtype)
    if not np.isfinite(values).all():
        raise Unbounded
    return values.view(np.uint8), Loss()


def _bf16_to_f16(rows: Rows, dtype: str) -> Encoded:
    """By integers, in runs that stay in the cache."""
    words, out = rows.reshape(-1), np.empty(rows.size, np.uint16)
    loss = Loss()
    for start in range(0, len(words), _CACHED):
        part = words[start : start + _CACHED]
        halves, places, errors = bf16_to_f16(part)
        if len(places) and ((halves[places] & _INFINITE) == _INFINITE).any():
            bounded = bool(np.isfinite(as_floats(part, dtype)).all())
            raise Overflow if bounded else Unbounded
        out[start : start + len(part)] = halves
        values = as_floats(part, dtype)
        loss = loss.plus(
            Loss(
                largest=float(np.abs(errors).max(initial=0.0)),
                squares=float(np.dot(values, values)),
                wrong=float(np.dot(errors, errors)),
                vanished=int(np.count_nonzero((halves[places] & np.uint16(0x7FFF)) == 0)),
            )
        )
    return out.view(np.uint8), loss


DIRECT: dict[tuple[str, str], Callable[[Rows, str], Encoded]] = {
    ("BF16", "bf16"): _same_words,
    ("F16", "f16"): _same_words,
    ("F32", "f32"): _same_words,
    ("BF16", "f32"): _wider,
    ("F16", "f32"): _wider,
    ("BF16", "f16"): _bf16_to_f16,
}
"""Source type and new format, where there is a shorter way than through float32 and back."""
