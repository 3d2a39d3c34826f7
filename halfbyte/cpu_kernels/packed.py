"""Families of packed weights: sizes of what `formats.py` multiplies and `pack.py` writes. Runs without numba."""

from __future__ import annotations

from dataclasses import dataclass

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


PACKED: dict[str, Family] = {
    "q4_0": Family(32, _HALF + _plane(4, 32)),
    "q4_1": Family(32, 2 * _HALF + _plane(4, 32)),
    "q5_0": Family(32, _HALF + _plane(1, 32) + _plane(4, 32)),
    "q5_1": Family(32, 2 * _HALF + _plane(1, 32) + _plane(4, 32)),
    "q8_0": Family(32, _HALF + _plane(8, 32), wide=True),
    # Scales and offsets of the 8 groups as whole bytes: 0.125 bit a weight more than the file's 6 bits.
    "q4_k": Family(256, 2 * _HALF + 16 * _BYTE + _plane(4, 256)),
    "q5_k": Family(256, 2 * _HALF + 16 * _BYTE + _plane(1, 256) + _plane(4, 256)),
    "q6_k": Family(256, _HALF + 16 * _BYTE + _plane(4, 256) + _plane(2, 256), halves=True),
    # Any format with integers and scales: bytes, float scale and offset every 16 columns.
    "i8": Family(32, 4 * 4 * ROWS + _plane(8, 32), wide=True, halves=True),
    "f16": Family(1, _HALF, 4),
    "bf16": Family(1, _HALF, 4),
    "f32": Family(1, 4 * ROWS, 4),
}
"""A format of the same name is packed from its file bytes; every other one goes through `i8` by its planes."""


def family_of(format_name: str, has_planes: bool) -> str:
    """Name of the family that holds tensors of a format."""
    if format_name in PACKED and format_name != "i8":  # GGUF's own i8 has integers and no scales
        return format_name
    return "i8" if has_planes else "f32"


FROM_FILE = tuple(name for name in PACKED if name != "i8")
"""Families whose kernels read the bytes of the format of the same name; `i8` is filled from planes in NumPy."""
EMBED_SCRATCH = 4096
"""Bytes a thread needs to decode a row: an unpacked group and a packed step."""
