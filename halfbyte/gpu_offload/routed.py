"""Values between `Dispatch` and `Combine`, which have a row for every expert of every token: how many, and whose."""

from __future__ import annotations

from ..model import program as ir
from .calls import Scratch, Sizes

TILE_ROWS = 16
"""Rows of one expert that a product takes at once."""


def routed_values(program: ir.Program) -> dict[str, int]:
    """The values whose rows an expert has, to how many of them a token has."""
    found: dict[str, int] = {}
    for op in program.ops:
        used = [found[name] for name in op.reads() if name in found]
        if isinstance(op, ir.Dispatch):
            used = [program.widths[op.route] // 2]
        if used and not isinstance(op, ir.Combine):
            found.update(dict.fromkeys(op.writes(), used[0]))
    return found


def most_tokens(sizes: Sizes) -> int:
    """Rows that may be dealt out, before each becomes several: of tokens or of asked-for ones."""
    return max(sizes.tokens, sizes.rows)


def most_tiles(sizes: Sizes, used: int, experts: int) -> int:
    """Tiles of a plan: every expert that has rows may have one that is not full."""
    rows = most_tokens(sizes) * used
    return min(rows, experts) + rows // TILE_ROWS


def plan_scratch(used: int, experts: int) -> Scratch:
    """`ExpertTiles` with its tiles. It begins with the number of routed rows, so that its address is their count."""
    return Scratch(lambda sizes: 16 + 16 * most_tiles(sizes, used, experts), "expert_plan")


def sources_scratch(used: int) -> Scratch:
    """The token of each routed row, i32[T * used]."""
    return Scratch(lambda sizes: _bytes(sizes, used), "expert_sources")


def places_scratch(used: int) -> Scratch:
    """The routed row of each choice of each token, i32[T, used]."""
    return Scratch(lambda sizes: _bytes(sizes, used), "expert_places")


def _bytes(sizes: Sizes, used: int) -> int:
    return 4 * most_tokens(sizes) * used
