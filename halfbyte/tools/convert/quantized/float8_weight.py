"""`float8_weight`: a weight of 8-bit floats, with scales for all of it, its rows or its blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from ....quant.block import Floats
from ..tensor_source import SourceTensor
from .float8 import FLOAT8
from .scale_grid import ScaleGrid, grid_of
from .scaled_rows import scaled_rows
from .stored import Stored, wrong
from .weight import QuantizedWeight

WEIGHTS = ("F8_E4M3", "F8_E5M2")


def float8_weight(stored: Stored, tensor: SourceTensor, scale: SourceTensor, blocks: Sequence[int]) -> QuantizedWeight:
    """Of a weight [N, M] or [E, N, M]; `blocks` are rows and columns that share a scale, where the config says so."""
    if len(tensor.shape) not in (2, 3) or min(tensor.shape) < 1:
        raise wrong(tensor, f"has shape {list(tensor.shape)}, which is no matrix")
    grid = grid_of(scale, tensor, tensor.shape, blocks)
    plain = SourceTensor(tensor.name, "F32", tensor.shape, tensor.path)
    return QuantizedWeight(plain, (tensor.name, scale.name), partial(_rows, stored, tensor, grid))


def _rows(stored: Stored, tensor: SourceTensor, grid: ScaleGrid, start: int, stop: int) -> Floats:
    columns = tensor.shape[-1]
    data = stored.read(tensor, start, stop).reshape(-1, columns)
    table = FLOAT8[tensor.dtype]

    def codes(first: int, last: int) -> Floats:
        values = np.empty((last - first, columns), np.float32)
        table.take(data[first:last], out=values, mode="clip")  # which is faster, and a byte needs no clipping
        if not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0]
            entry = math.prod(tensor.shape[1:-1])
            at = f"entry {start + (first + row) // entry}, column {column}"
            raise wrong(tensor, f"has {values[row, column]} in {at}")
        return values

    values = scaled_rows(codes, columns, grid.of_rows(stored, start, stop), grid.spread)
    return values.reshape(stop - start, *tensor.shape[1:])
