"""Families of packed weights: sizes of what `formats.py` multiplies and `pack.py` writes. Runs without numba."""

from __future__ import annotations

from dataclasses import dataclass

from ..quant.e2m1 import E2M1
from ..quant.iq4_nl import LEVELS as IQ4_NL_LEVELS

ROWS = 16
"""Rows of a tile; a last incomplete one is filled with zero rows."""


@dataclass(frozen=True)
class Family:
    """One way to lay out 16 rows: a step holds `columns` columns in `step_bytes` bytes.

    `element_bytes` is what an activation takes: 2 for two planes of bytes, 4 for float32. `wide` says that weights take
    all 8 bits of a byte, `halves` that the halves of a group of 32 columns have scales of their own.
    """

    columns: int
    step_bytes: int
    element_bytes: int = 2
    wide: bool = False
    halves: bool = False

    @property
    def quantized(self) -> bool:
        """Whether activations are quantized."""
        return self.element_bytes == 2

    def tile_bytes(self, columns: int) -> int:
        """Bytes of 16 rows of `columns` columns."""
        return columns // self.columns * self.step_bytes


_HALF = 2 * ROWS
_BYTE = ROWS


def _plane(bits: int, columns: int) -> int:
    return ROWS * columns * bits // 8


@dataclass(frozen=True)
class Levels:
    """Values that a code of at most 4 bits stands for, by code."""

    values: tuple[int, ...]

    @property
    def least(self) -> int:
        """The least of them."""
        return min(self.values)

    @property
    def positive(self) -> tuple[int, ...]:
        """Magnitudes, where both signs have the same."""
        return tuple(value for value in self.values if value > 0)

    @property
    def above_least(self) -> tuple[int, ...]:
        """How far each value lies above the least: unsigned, as products want them."""
        return tuple(value - self.least for value in self.values)


def _signed(*sizes: int) -> Levels:
    """Ascending levels of a grid's magnitudes with either sign."""
    return Levels((*(-size for size in reversed(sizes)), *sizes))


IQ4, MXFP4 = Levels(tuple(IQ4_NL_LEVELS.tolist())), Levels(tuple(E2M1.tolist()))
IQ3_XXS = _signed(4, 12, 20, 28, 36, 44, 52, 62)
IQ2 = _signed(8, 25, 43)
IQ1 = _signed(1, 7, 9)
"""In eighths: -1, 0 and 1, each with a shift of 1 up or down."""

PACKED: dict[str, Family] = {
    "q4_0": Family(32, _HALF + _plane(4, 32)),
    "q4_1": Family(32, 2 * _HALF + _plane(4, 32)),
    "q5_0": Family(32, _HALF + _plane(1, 32) + _plane(4, 32)),
    "q5_1": Family(32, 2 * _HALF + _plane(1, 32) + _plane(4, 32)),
    "q8_0": Family(32, _HALF + _plane(8, 32), wide=True),
    "q2_k": Family(256, 2 * _HALF + 16 * _BYTE + _plane(2, 256), halves=True),
    # Scales of 6 bits as whole bytes: 0.125 bit a weight more than the file.
    "q3_k": Family(256, _HALF + 16 * _BYTE + _plane(1, 256) + _plane(2, 256), halves=True),
    "q4_k": Family(256, 2 * _HALF + 16 * _BYTE + _plane(4, 256)),
    "q5_k": Family(256, 2 * _HALF + 16 * _BYTE + _plane(1, 256) + _plane(4, 256)),
    "q6_k": Family(256, _HALF + 16 * _BYTE + _plane(4, 256) + _plane(2, 256), halves=True),
    "iq4_nl": Family(32, _HALF + _plane(4, 32), wide=True),
    "iq4_xs": Family(256, _HALF + 8 * _BYTE + _plane(4, 256), wide=True),
    "mxfp4": Family(32, _BYTE + _plane(4, 32)),
    "nvfp4": Family(64, 4 * _BYTE + _plane(4, 64), halves=True),
    # Grids are unpacked: see docs/decisions/grids-are-unpacked.md.
    "iq3_s": Family(256, _HALF + 8 * _BYTE + _plane(4, 256)),
    "iq3_xxs": Family(256, _HALF + 8 * _BYTE + _plane(4, 256)),
    "iq2": Family(256, _HALF + 8 * _BYTE + _plane(1, 256) + _plane(2, 256), halves=True),
    "iq1_m": Family(256, _HALF + 8 * _BYTE + _plane(1, 256) + _plane(2, 256), halves=True),
    "iq1_s": Family(256, _HALF + 8 * _BYTE + _plane(2, 256)),
    "tq2_0": Family(256, _HALF + _plane(2, 256)),
    "q1_0": Family(128, _HALF + _plane(1, 128)),
    "f16": Family(1, _HALF, 4),
    "bf16": Family(1, _HALF, 4),
    "f32": Family(1, 4 * ROWS, 4),
}
FAMILY_OF: dict[str, str] = {name: name for name in PACKED if name != "iq2"} | {
    "iq2_xxs": "iq2",
    "iq2_xs": "iq2",
    "iq2_s": "iq2",
    "tq1_0": "tq2_0",
}
"""Family of each format that kernels read from the file's own bytes; every other one is decoded to float32 first."""


def family_of(format_name: str) -> str:
    """Name of the family that holds tensors of a format."""
    return FAMILY_OF.get(format_name, "f32")


EMBED_SCRATCH = 4096
"""Bytes a thread needs to decode a row: an unpacked group and a packed step."""
