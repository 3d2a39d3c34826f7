"""Families of packed weights: sizes of what `kernels/packed.cuh` reads and `kernels/pack.cuh` writes."""

from __future__ import annotations

from dataclasses import dataclass

from ..model.backend import Weight

ROWS = 16
"""Rows of a tile; a last incomplete one is filled with zero rows."""


@dataclass(frozen=True)
class Family:
    """One way to hold a matrix; `name` is its struct in CUDA.

    Tiles of 16 rows consist of steps of `columns` columns in `step_bytes` bytes, the last one filled with zeros. Plain
    numbers are no tiles but rows as in the file, a step one number.
    """

    name: str
    columns: int
    step_bytes: int
    plain: bool = False

    def tile_bytes(self, columns: int) -> int:
        """Bytes of 16 rows of `columns` columns."""
        return -(-columns // self.columns) * self.step_bytes

    def matrix_bytes(self, rows: int, columns: int) -> int:
        """Bytes of a whole matrix."""
        return rows * columns * self.step_bytes if self.plain else -(-rows // ROWS) * self.tile_bytes(columns)


def _tiled(name: str, columns: int, scales: int, bits: int) -> Family:
    """Family whose steps are `scales` bytes of them and codes of `bits`."""
    return Family(name, columns, scales + ROWS * columns * bits // 8)


_HALF = 2 * ROWS
_BYTE = ROWS
_TQ2_0 = _tiled("TQ2_0", 256, _HALF, 2)
_IQ2 = _tiled("IQ2", 256, _HALF + 16 * _BYTE, 3)
F32 = Family("F32", 1, 4, plain=True)

FAMILIES: dict[str, Family] = {
    "q4_0": _tiled("Q4_0", 64, 2 * _HALF, 4),
    "q4_1": _tiled("Q4_1", 64, 4 * _HALF, 4),
    "q5_0": _tiled("Q5_0", 64, 2 * _HALF, 5),
    "q5_1": _tiled("Q5_1", 64, 4 * _HALF, 5),
    "q8_0": _tiled("Q8_0", 64, 2 * _HALF, 8),
    "q2_k": _tiled("Q2_K", 256, 2 * _HALF + 16 * _BYTE, 2),
    "q3_k": _tiled("Q3_K", 256, _HALF + 16 * _BYTE, 3),
    "q4_k": _tiled("Q4_K", 256, 2 * _HALF + 16 * _BYTE, 4),
    "q5_k": _tiled("Q5_K", 256, 2 * _HALF + 16 * _BYTE, 5),
    "q6_k": _tiled("Q6_K", 256, _HALF + 16 * _BYTE, 6),
    "iq4_nl": _tiled("IQ4_NL", 64, 2 * _HALF, 4),
    "iq4_xs": _tiled("IQ4_XS", 256, _HALF + 8 * _BYTE, 4),
    "mxfp4": _tiled("MXFP4", 64, 2 * _BYTE, 4),
    "nvfp4": _tiled("NVFP4", 64, 4 * _BYTE, 4),
    "iq3_s": _tiled("IQ3_S", 256, _HALF + 8 * _BYTE, 4),
    "iq3_xxs": _tiled("IQ3_XXS", 256, _HALF + 8 * _BYTE, 4),
    "iq2_xxs": _IQ2,
    "iq2_xs": _IQ2,
    "iq2_s": _IQ2,
    "iq1_s": _tiled("IQ1_S", 256, _HALF + 8 * _BYTE, 2),
    "iq1_m": _tiled("IQ1_M", 256, _HALF + 16 * _BYTE, 3),
    "tq1_0": _TQ2_0,
    "tq2_0": _TQ2_0,
    "q1_0": _tiled("Q1_0", 256, 2 * _HALF, 1),
    "f16": Family("F16", 1, 2, plain=True),
    "bf16": Family("BF16", 1, 2, plain=True),
    "f32": F32,
}
"""Family of each format that the device reads from the file's own bytes; every other one is decoded to f32 first."""


def family_of(weight: Weight) -> Family:
    """Family that holds a matrix."""
    return FAMILIES.get(weight.format.name, F32)


def packed_bytes(weight: Weight, experts: int = 1) -> int:
    """Bytes on the device of a matrix, or of those of `experts` that lie below each other."""
    rows, columns = weight.shape
    return experts * family_of(weight).matrix_bytes(rows // experts, columns)
