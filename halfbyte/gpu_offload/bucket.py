"""Sizes that steps are rounded up to, so that few graphs serve all of them."""

from __future__ import annotations

from .calls import Sizes

STEPS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128)


def bucket(tokens: int, rows: int, sequences: int, most: Sizes) -> Sizes:
    """The sizes to run a step of few tokens with."""
    return Sizes(_up(tokens, most.tokens), _up(rows, most.rows) if rows else 0, _up(sequences, most.sequences))


def _up(number: int, most: int) -> int:
    step = next((step for step in STEPS if step >= number), -(-number // 64) * 64)
    return max(number, min(step, most))
