"""Weights from the file into one arena of packed tiles, in parallel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..model import program as ir
from ..model.backend import Progress, Weight
from .arena import Arena, rounded
from .instruction import LAYOUTS, WORDS
from .loader import Kernels
from .packed import PACKED, ROWS, Family, family_of
from .threads import Team


@dataclass(frozen=True)
class PackedWeight:
    """A matrix as kernels read it, or those of `experts` one behind the other, of which a token's product reads `used`.

    `rows` and `n_bytes` are those of one.
    """

    family: str
    rows: int
    columns: int
    address: int
    experts: int = 1
    used: int = 1

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
        """Bytes of one whole matrix."""
        return -(-self.rows // ROWS) * self.per_tile


def family_for(weight: Weight) -> str:
    """Family that a matrix goes to; rows too odd for groups of 32 are held as float32."""
    family = family_of(weight.format.name)
    return family if weight.shape[1] % PACKED[family].columns == 0 else "f32"


def packer_of(weight: Weight) -> str:
    """Name of the kernel that packs a matrix: from the file's bytes, or from decoded values."""
    family = family_for(weight)
    return f"pack_{weight.format.name if family == family_of(weight.format.name) and family != 'f32' else 'f32'}"


def unplaced(program: ir.Program, weights: Mapping[str, Weight]) -> dict[str, PackedWeight]:
    """What every matrix of a program will be, before it has a place."""
    used = {op.out: op.used for op in program.ops if isinstance(op, ir.MoeRoute)}
    found = {}
    for op in program.ops:
        if isinstance(op, ir.Linear | ir.ExpertLinear):
            weight, experts = weights[op.weight], op.experts if isinstance(op, ir.ExpertLinear) else 1
            shape = weight.shape[0] // experts, weight.shape[1]
            chosen = used[op.route] if isinstance(op, ir.ExpertLinear) else 1
            found[op.weight] = PackedWeight(family_for(weight), *shape, 0, experts, chosen)
    return found


def packed_bytes(weight: PackedWeight) -> int:
    """Arena bytes of a weight."""
    return rounded(weight.experts * weight.n_bytes)


def pack_all(
    weights: Mapping[str, Weight],
    layouts: Mapping[str, PackedWeight],
    arena: Arena,
    team: Team,
    kernels: Kernels,
    progress: Progress | None,
) -> dict[str, PackedWeight]:
    """Pack every matrix as its unplaced layout says; the arena must have `packed_bytes` of each."""
    packed = {name: replace(layout, address=arena.take(packed_bytes(layout))) for name, layout in layouts.items()}
    total = sum(weight.data.nbytes for weight in weights.values())
    done = 0
    batch: list[tuple[Weight, PackedWeight]] = []
    for name, weight in weights.items():
        batch.append((weight, packed[name]))
        done += weight.data.nbytes
        if sum(weight.data.nbytes for weight, _ in batch) >= BATCH or done == total:
            _pack_batch(batch, team, kernels)
            batch.clear()
            if progress:
                progress("pack", done, total)
    return packed


BATCH = 128 << 20
"""File bytes packed by one call, which runs without Python's lock: others get their work done meanwhile."""


def _pack_batch(batch: Sequence[tuple[Weight, PackedWeight]], team: Team, kernels: Kernels) -> None:
    instructions, decoded = [], []
    for weight, target in batch:
        data, packer = weight.data, packer_of(weight)
        if target.family == "f32" and weight.format.name != "f32":
            data = weight.decode().view(np.uint8)
            decoded.append(data)  # read by the instruction until it has run
        instructions += [_instruction(data, target, expert, kernels[packer]) for expert in range(target.experts)]
    program = np.array(instructions, np.int64)
    team.run(program, len(program))


def _instruction(data: NDArray[np.uint8], target: PackedWeight, expert: int, packer: int) -> list[int]:
    operands = {
        "source": data.ctypes.data + expert * target.rows * data.strides[0],
        "target": target.address + expert * target.n_bytes,
        "rows": target.rows,
        "columns": target.columns,
        "row_bytes": data.shape[1],
        "tile_bytes": target.per_tile,
    }
    words = [packer, 0, 0, *LAYOUTS["pack"].words(operands)]
    return words + [0] * (WORDS - len(words))
