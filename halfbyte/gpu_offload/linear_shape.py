"""How blocks and warps share a matrix: decided by its shape and the card alone, since sums are cut there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .families import Family

WARPS = 16
THREADS = 32 * WARPS
SEGMENTS = 3
"""Matrices of one launch."""
UNIT = 256
"""Columns that a warp takes at once."""
_SPLITS = (1, 2, 4, 8, 16)
OWN_UNIT_BYTES = 640
"""Of a unit of one token, as `OwnUnit` in `kernels/linear.cuh` has it."""
ALONE_BYTES = 2 << 10
"""More than half of a multiprocessor's shared memory, of which a block gets all but 1 KB, so that it is alone there."""
STAGES = 2
"""Slots of a warp's ring. More hide no more, and what is fetched early is in the way of what is needed first."""
NORMING_STAGES = (4, 3, 2)
"""The same where a block norms its row before it multiplies, and memory would be idle meanwhile."""


def quads_for(tokens: int) -> int:
    """Quads of tokens that a block takes: with more than two, registers do not hold what a warp reads of them."""
    return 1 if tokens <= 4 else 2


@dataclass(frozen=True)
class TileShape:
    """`tiles` tiles of 16 rows of `columns` columns."""

    family: Family
    tiles: int
    columns: int
    multiprocessors: int

    @cached_property
    def split(self) -> int:
        """Warps that share a tile: the number with which the busiest warp has the least to do."""
        units = -(-self.columns // UNIT)

        def busiest(split: int) -> int:
            groups = self.multiprocessors * (WARPS // split)
            return -(-self.tiles // groups) * -(-units // split)

        return min(_SPLITS, key=lambda split: (busiest(split), units > split, split))

    @property
    def held(self) -> bool:
        """Whether each warp has one unit of the columns, whatever tile it works on."""
        return -(-self.columns // UNIT) <= self.split

    @property
    def unit_bytes(self) -> int:
        """Bytes of 256 columns of a tile."""
        return UNIT // self.family.columns * self.family.step_bytes

    def grid(self, tokens: int, most: int) -> tuple[int, int, int]:
        """A block a multiprocessor, if there is work for as many.

        Blocks of other tokens run beside each other: they read the same tiles at about the same time, and memory does
        once.
        """
        token_blocks = -(-tokens // (4 * self.quads(tokens, most)))
        blocks = min(max(1, self.multiprocessors // max(token_blocks, 1)), -(-self.tiles * self.split // WARPS))
        return blocks, token_blocks, 1

    def quads(self, tokens: int, most: int) -> int:
        """Quads of tokens that a block takes."""
        return self._fit(tokens, most)[0]

    def shared(self, tokens: int, most: int, own: int = 0) -> int:
        """Shared memory of a block, with `own` for a row of its own: too much for two blocks on a multiprocessor.

        Blocks of the next kernel would take the room that is left, where there is any: two on one multiprocessor and
        none on another, which then waits.
        """
        return max(self._shared(*self._fit(tokens, most, own)) + own, most // 2 + ALONE_BYTES)

    def own_bytes(self, most: int) -> int:
        """Shared memory of a token that a block norms for itself; 0 where there is no room for it."""
        n_bytes = -(-self.columns // UNIT) * OWN_UNIT_BYTES
        ring = WARPS * self._fit(1, most)[1] * self.unit_bytes
        return n_bytes if ring + _parts(1) + n_bytes <= most else 0

    def kernel(self, name: str, tokens: int, most: int, own: int = 0, *more: bool) -> str:
        """The instance for so many tokens, where a block has `most` bytes of shared memory, `own` for its own row."""
        quads, stages = self._fit(tokens, most, own)
        flags = (str(flag).lower() for flag in (self.held, *more))
        return f"{name}<{', '.join(map(str, (self.family.name, quads, self.split, stages, *flags)))}>"

    def _fit(self, tokens: int, most: int, own: int = 0) -> tuple[int, int]:
        """Quads that a block takes, and slots of a warp's ring, or as many as there is room for."""
        quads = quads_for(tokens)
        while quads > 1 and self._shared(quads, 1) > most:
            quads //= 2
        wanted = NORMING_STAGES if own else (STAGES,)
        return quads, next((stages for stages in wanted if self._shared(quads, stages) + own <= most), 1)

    def _shared(self, quads: int, stages: int) -> int:
        return WARPS * stages * self.unit_bytes + (0 if self.split == 1 else _parts(quads))


def _parts(quads: int) -> int:
    """Bytes of the sums that warps leave for each other, of two rounds."""
    return 2 * WARPS * 2 * quads * 32 * 4
