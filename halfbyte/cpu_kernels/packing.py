"""Weights from the file into one arena of packed tiles, in parallel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..model.backend import Progress, Weight
from .arena import Arena, rounded
from .instruction import LAYOUTS, WORDS
from .loader import Kernels
from .packed import PACKED, ROWS, Family, family_of
from .threads import Team


@dataclass(frozen=True)
class PackedWeight:
    """A matrix as kernels read it. `n_bytes` is what one token's product reads."""

    family: str
    rows: int
    columns: int
    address: int

    @property
    def layout(self) -> Family:
        """Sizes of the family."""
        return PACKED[self.family]

    @property
    def per_tile(self) -> int:
        """Bytes of 16 rows."""
        return self.layout.tile_bytes(self.columns)

    @property
    def n_bytes(self) -> int:
        """Bytes of the whole matrix."""
        return -(-self.rows // ROWS) * self.per_tile


def family_for(weight: Weight) -> str:
    """Family that a matrix goes to; rows too odd for groups of 32 are held as float32."""
    family = family_of(weight.format.name, weight.format.planes is not None)
    return family if weight.shape[1] % PACKED[family].columns == 0 else "f32"


def packed_bytes(weight: Weight) -> int:
    """Arena bytes of a matrix."""
    return rounded(PackedWeight(family_for(weight), *weight.shape, 0).n_bytes)


def pack_all(
    weights: Mapping[str, Weight], arena: Arena, team: Team, kernels: Kernels, progress: Progress | None
) -> dict[str, PackedWeight]:
    """Pack every matrix; the arena must have `packed_bytes` of each."""
    packed = {
        name: PackedWeight(family_for(weight), *weight.shape, arena.take(packed_bytes(weight)))
        for name, weight in weights.items()
    }
    total = sum(weight.data.nbytes for weight in weights.values())
    done = 0
    batch: list[tuple[Weight, PackedWeight]] = []
    for name, weight in weights.items():
        batch.append((weight, packed[name]))
        done += weight.data.nbytes
        if sum(weight.data.nbytes for weight, _ in batch) >= BATCH or done == total:
            _pack_batch(batch, arena, team, kernels)
            batch.clear()
            if progress:
                progress("pack", done, total)
    return packed


BATCH = 128 << 20
"""File bytes packed by one call, which runs without Python's lock: others get their work done meanwhile."""


def _pack_batch(batch: Sequence[tuple[Weight, PackedWeight]], arena: Arena, team: Team, kernels: Kernels) -> None:
    instructions, decoded = [], []
    for weight, target in batch:
        if target.family == weight.format.name:
            instructions.append(_instruction(weight.data, target, weight.data.shape[1], kernels))
        elif target.family == "i8":
            _pack_planes(weight, target, arena)
        else:
            values = weight.decode().view(np.uint8)
            decoded.append(values)  # read by the instruction until it has run
            instructions.append(_instruction(values, target, values.shape[1], kernels))
    if instructions:
        program = np.array(instructions, np.int64)
        team.run(program, len(program))


def _instruction(data: NDArray[np.uint8], target: PackedWeight, row_bytes: int, kernels: Kernels) -> list[int]:
    operands = {
        "source": data.ctypes.data,
        "target": target.address,
        "rows": target.rows,
        "columns": target.columns,
        "row_bytes": row_bytes,
        "tile_bytes": target.per_tile,
    }
    words = [kernels[f"pack_{target.family}"], 0, 0, *LAYOUTS["pack"].words(operands)]
    return words + [0] * (WORDS - len(words))


def _pack_planes(weight: Weight, target: PackedWeight, arena: Arena) -> None:
    """Any format by its integers and scales: 16 rows at a time, whatever the format's groups are."""
    assert weight.format.planes is not None
    columns = target.columns
    steps = columns // 32
    out = arena.view(target.address, (-(-target.rows // ROWS), steps, PACKED["i8"].step_bytes), np.uint8)
    with np.errstate(over="ignore", invalid="ignore"):
        for tile in range(out.shape[0]):
            rows = weight.data[ROWS * tile : ROWS * (tile + 1)]
            planes = weight.format.planes(np.ascontiguousarray(rows).reshape(-1, weight.format.block_bytes))
            q = np.zeros((ROWS, columns), np.int16)
            scale, offset = (np.zeros((ROWS, columns // 16), np.float32) for _ in range(2))
            q[: len(rows)] = planes.q.reshape(len(rows), columns)
            scale[: len(rows)] = _per_16(planes.scale, len(rows), columns)
            if planes.offset is not None:
                offset[: len(rows)] = _per_16(planes.offset, len(rows), columns)
            out[tile] = _interleave(q, scale, offset, steps)


def _per_16(values: np.ndarray, rows: int, columns: int) -> np.ndarray:
    values = values.reshape(rows, -1)
    return np.repeat(values, columns // 16 // values.shape[1], axis=1)


def _interleave(q: np.ndarray, scale: np.ndarray, offset: np.ndarray, steps: int) -> np.ndarray:
    """u8[steps, step_bytes]: two scales, two offsets, 32 columns of bytes shifted to unsigned."""
    parts = [
        np.ascontiguousarray(part.reshape(ROWS, steps, 2).transpose(1, 2, 0)).view(np.uint8).reshape(steps, -1)
        for part in (scale, offset)
    ]
    chunks = (q + 128).astype(np.uint8).reshape(ROWS, steps, 8, 4).transpose(1, 2, 0, 3).reshape(steps, -1)
    return np.concatenate([*parts, chunks], axis=1)
