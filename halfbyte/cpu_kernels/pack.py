"""From the file's rows to packed tiles, one kernel a format. Reads `rows` rows, writes whole tiles of 16."""

from __future__ import annotations

from collections.abc import Callable

from . import blocks, grid_blocks
from .instruction import COUNTER, LAYOUTS
from .jit import helper
from .memory import atomic_add, load_i64, store_i64
from .packed import FAMILY_OF, PACKED

SOURCE, TARGET, ROWS, COLUMNS, ROW_BYTES, TILE_BYTES = LAYOUTS["pack"].offsets()


def block_of(name: str) -> Callable[..., int]:
    """The helper that packs one block of a format."""
    found: Callable[..., int] = getattr(blocks, name, None) or getattr(grid_blocks, name)
    return found


@helper
def _pack(instr, block, columns, step_bytes):
    rows, row_bytes, tile_bytes = load_i64(instr + ROWS), load_i64(instr + ROW_BYTES), load_i64(instr + TILE_BYTES)
    steps = load_i64(instr + COLUMNS) // columns
    while True:
        first = 16 * atomic_add(instr + COUNTER, 1)
        if first >= rows:
            break
        tile = load_i64(instr + TARGET) + (first // 16) * tile_bytes
        if first + 16 > rows:
            for i in range(0, tile_bytes, 8):
                store_i64(tile + i, 0)
        for row in range(min(16, rows - first)):
            source = load_i64(instr + SOURCE) + (first + row) * row_bytes
            for step in range(steps):
                source += block(tile + step * step_bytes, source, row)


def _kernel(name: str) -> Callable[..., None]:
    family = PACKED[FAMILY_OF[name]]
    block, columns, step_bytes = block_of(name), family.columns, family.step_bytes

    def pack(instr, state, tid, nth):
        _pack(instr, block, columns, step_bytes)

    return pack


KERNELS = {f"pack_{name}": _kernel(name) for name in FAMILY_OF}
