"""`Modes`: a share lowered for steps of every kind, before anything is on a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..model.backend import Stage
from ..model.program import Program
from .calls import Sizes
from .groups import FEW_TOKENS
from .lower import Lowering, Products, Target
from .mode import Lowered, lower
from .packing import PackedMatrix

BYTES_PROMPT = 64
"""Tokens of prompts up to which kernels over packed bytes take less time than a library over halves made of them."""
READ_ROWS = 512
"""Rows of logits that a step of any program may ask for."""


class Modes(NamedTuple):
    """`decode` for sequences with few new tokens; prompts by products over packed bytes, and over halves."""

    decode: Lowered
    by_bytes: Lowered
    by_halves: Lowered

    @property
    def prompts(self) -> tuple[Lowered, Lowered]:
        """Those of which a step has one."""
        return self.by_bytes, self.by_halves

    @property
    def n_bytes(self) -> int:
        """What values and scratch take on a device."""
        return sum(room([self.decode])) + sum(room(self.prompts))


def room(lowered: Sequence[Lowered]) -> tuple[int, int]:
    """Bytes of the values and of the scratch of modes that never run at the same time."""
    values = max(one.layout.value_bytes for one in lowered)
    return max(values, 1), max(1, *(one.layout.scratch_bytes for one in lowered))


def largest_step(program: Program, max_tokens: int, max_seqs: int) -> Sizes:
    """Of steps with so many tokens of so many sequences; of an encoder all states are asked for."""
    rows = max_tokens if program.encoder else max(READ_ROWS, FEW_TOKENS * max_seqs)
    return Sizes(max_tokens, min(max_tokens, rows), min(max_seqs, max_tokens))


def lower_modes(
    program: Program,
    stages: Sequence[Stage],
    packed: Mapping[str, PackedMatrix],
    target: Target,
    max_tokens: int,
    max_seqs: int,
) -> Modes:
    """Raises `UnsupportedError` for an op that no kernel computes."""
    most = largest_step(program, max_tokens, max_seqs)

    def lowered(prompt: bool, products: Products, tokens: int) -> Lowered:
        sizes = Sizes(min(most.tokens, tokens), min(most.rows, tokens), min(most.sequences, tokens))
        return lower(Lowering(program, packed, target, prompt, products), stages, sizes)

    return Modes(
        decode=lowered(False, "bytes", FEW_TOKENS * max_seqs),
        by_bytes=lowered(True, "bytes", BYTES_PROMPT),
        by_halves=lowered(True, "halves", max_tokens),
    )
