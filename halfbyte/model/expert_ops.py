"""Ops of a mixture of experts: between `Dispatch` and `Combine` every token has as many rows as it has experts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .ops import Op


@dataclass(frozen=True)
class MoeRoute(Op):
    """Choose `used` of the experts by their scores `x` [T, E]; among equals the lower number first.

    `out` [T, 2 * used]: the numbers of the chosen, ascending, then their weights in the same order. Weights are
    `gate` of all scores, divided by the sum of the chosen if `normalise`, times `scale`.
    """

    x: str
    out: str
    used: int
    gate: Literal["softmax", "sigmoid"]
    normalise: bool
    scale: float = 1.0
    READS = ("x",)


@dataclass(frozen=True)
class Dispatch(Op):
    """A row for every expert of every token, sorted by expert and then by token: out [T * used, D] of x [T, D]."""

    x: str
    route: str
    out: str
    READS = ("x", "route")


@dataclass(frozen=True)
class ExpertLinear(Op):
    """`Linear` with the matrix of the row's expert: x [T * used, M] sorted as `Dispatch` does, weight [E * N, M]."""

    x: str
    route: str
    weight: str
    out: str
    experts: int
    bias: str | None = None
    READS = ("x", "route")
    WEIGHTS = ("weight", "bias")


@dataclass(frozen=True)
class Combine(Op):
    """`out[t]` is the sum of the rows of its experts, each times its weight, in ascending order of the experts."""

    x: str
    route: str
    out: str
    READS = ("x", "route")
