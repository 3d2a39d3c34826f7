"""Weights from the file to packed matrices on the device."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..model import program as ir
from ..model.backend import Progress, Weight
from .device import Buffer, Device, Launch
from .families import ROWS, Family, family_of, packed_bytes
from .grid_tables import grid_table

STAGING_BYTES = 64 << 20
"""Of the file at a time, twice on the host and once on the device."""
_ALIGNED = 256
BEHIND = 8192
"""Bytes behind the last matrix: products fetch whole units, the last of which may reach over the end."""


@dataclass(frozen=True)
class PackedMatrix:
    """A matrix on the device, or those of `experts` one behind the other; `rows` and `n_bytes` are those of one."""

    name: str
    family: Family
    rows: int
    columns: int
    experts: int
    address: int
    buffer: Buffer | None = field(default=None, repr=False, compare=False)

    @property
    def n_bytes(self) -> int:
        """Bytes of one matrix."""
        return self.family.matrix_bytes(self.rows, self.columns)


def matrices_of(program: ir.Program) -> dict[str, int]:
    """Weights that are packed, products' and tables, to how many experts' matrices each holds."""
    found = {}
    for op in program.ops:
        if isinstance(op, ir.Linear | ir.ExpertLinear):
            found[op.weight] = op.experts if isinstance(op, ir.ExpertLinear) else 1
        elif isinstance(op, ir.Embed | ir.EmbedPositions):
            found.setdefault(op.table, 1)
    return found


def pack_all(
    weights: Mapping[str, Weight], device: Device, progress: Progress | None, experts: Mapping[str, int] | None = None
) -> dict[str, PackedMatrix]:
    """Pack every matrix; `experts` says which hold those of several. Takes no more than `STAGING_BYTES` besides.

    Raises `ResourceError` before anything is copied where the device has no room for all of them.
    """
    counts = {name: (experts or {}).get(name, 1) for name in weights}
    sizes = {name: _rounded(packed_bytes(weight, counts[name])) for name, weight in weights.items()}
    if not weights:
        return {}
    buffer = device.allocate(sum(sizes.values()) + BEHIND)
    staging = _Staging(device, max(_piece_bytes(weight) for weight in weights.values()))
    device.load({_kernel(weight) for weight in weights.values() if not family_of(weight).plain}, progress)
    packed, address = {}, buffer.address
    done, total = 0, sum(weight.data.nbytes for weight in weights.values())
    for name, weight in weights.items():
        rows, columns = weight.shape[0] // counts[name], weight.shape[1]
        packed[name] = PackedMatrix(name, family_of(weight), rows, columns, counts[name], address, buffer)
        address += sizes[name]
        for n_bytes in _pack(weight, packed[name], staging):
            done += n_bytes
            if progress:
                progress("pack", done, total)
    device.synchronize()
    return packed


def _rounded(n_bytes: int) -> int:
    return -(-n_bytes // _ALIGNED) * _ALIGNED


def _kernel(weight: Weight) -> str:
    return f"pack<file::{weight.format.name.upper()}>"


def _row_bytes(weight: Weight) -> int:
    """Bytes of a row as it is copied: formats without a family are decoded on the way."""
    family = family_of(weight)
    return weight.shape[1] * family.step_bytes if family.plain else weight.data.shape[1]


def _piece_bytes(weight: Weight) -> int:
    """Room that the pieces of a weight want: a tile at least, and all of them at most."""
    tile = ROWS * _row_bytes(weight)
    return min(max(STAGING_BYTES, tile), -(-weight.shape[0] // ROWS) * tile)


class _Staging:
    """Two pieces of pinned memory in turn, so that one is filled while the other is copied, and room on the device."""

    def __init__(self, device: Device, n_bytes: int):
        self.device = device
        self.n_bytes = n_bytes
        self.buffer = device.allocate(n_bytes)
        self._pinned = [device.pinned(n_bytes) for _ in range(2)]
        self._grids: dict[str, Buffer] = {}

    def copy(self, rows: NDArray[np.uint8], address: int) -> None:
        """Enqueue a copy of u8[N, row_bytes], rows one behind the other."""
        self._pinned.reverse()
        target = self._pinned[0][: rows.size]
        _fill(target.reshape(rows.shape), rows)
        # The other piece, which is filled next, has been read by then.
        self.device.synchronize()
        self.device.copy_in(address, target)

    def grid(self, format_name: str) -> int:
        """Address of a format's grid, 0 where it has none."""
        table = grid_table(format_name)
        if table is None:
            return 0
        if format_name not in self._grids:
            self._grids[format_name] = self.device.allocate(table.nbytes)
            self.device.copy_in(self._grids[format_name].address, table)
        return self._grids[format_name].address


_FILLERS = min(8, os.cpu_count() or 1)
"""One thread alone copies from a mapped file more slowly than a device takes it."""


def _fill(target: NDArray[np.uint8], source: NDArray[np.uint8]) -> None:
    if source.nbytes < 1 << 20:
        np.copyto(target, source)
        return
    step = -(-len(source) // _FILLERS)
    with ThreadPoolExecutor(_FILLERS) as pool:
        parts = [slice(first, first + step) for first in range(0, len(source), step)]
        list(pool.map(lambda part: np.copyto(target[part], source[part]), parts))


def _pack(weight: Weight, matrix: PackedMatrix, staging: _Staging) -> Iterator[int]:
    """Enqueue a weight piece by piece; gives the file's bytes of each."""
    if matrix.family.plain:
        return _copy_rows(weight, matrix, staging)
    return _pack_tiles(weight, matrix, staging)


def _copy_rows(weight: Weight, matrix: PackedMatrix, staging: _Staging) -> Iterator[int]:
    row_bytes = _row_bytes(weight)
    step = staging.n_bytes // row_bytes
    for first in range(0, len(weight.data), step):
        rows = weight.data[first : first + step]
        as_is = rows.shape[1] == row_bytes
        values = rows if as_is else weight.format.decode(rows).view(np.uint8)
        staging.copy(values, matrix.address + first * row_bytes)
        yield rows.nbytes


def _pack_tiles(weight: Weight, matrix: PackedMatrix, staging: _Staging) -> Iterator[int]:
    """Pieces are whole tiles; those of experts may lie in one."""
    row_bytes, per_expert = weight.data.shape[1], -(-matrix.rows // ROWS)
    steps = -(-matrix.columns // matrix.family.columns)
    grid = staging.grid(weight.format.name)

    def row_of(tile: int) -> int:
        expert, tile = divmod(tile, per_expert)
        return expert * matrix.rows + tile * ROWS

    tiles, step = matrix.experts * per_expert, staging.n_bytes // (ROWS * row_bytes)
    for first in range(0, tiles, step):
        last = min(first + step, tiles)
        rows = weight.data[row_of(first) : row_of(last)]
        staging.copy(rows, staging.buffer.address)
        arguments = (staging.buffer.address, matrix.address, grid, row_bytes, matrix.columns, matrix.rows, first)
        threads = matrix.family.columns // 64 * 32
        staging.device.launch(Launch(_kernel(weight), (last - first, steps, 1), threads, arguments))
        yield rows.nbytes
