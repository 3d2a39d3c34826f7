"""`Recipe`: which tensor of a model gets which format, as data: a base format and the rules that depart from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .roles import FFN_DOWN, FFN_GATE, FFN_UP

_80_LAYERS = ("llama", "qwen2", "deci", "olmo")


@dataclass(frozen=True)
class ModelFacts:
    """What rules ask about a model. `gqa` is how many query heads share a key head, 0 where that means nothing."""

    arch: str
    n_layers: int
    n_experts: int = 0
    gqa: int = 1
    calibrated: bool = False
    """Whether an importance matrix is at hand."""

    @property
    def eighty_layers(self) -> bool:
        """The shape of the 70B models, whose values are small beside all else."""
        return self.n_layers == 80 and self.gqa > 1 and self.arch in _80_LAYERS


@dataclass(frozen=True)
class Place:
    """Where a tensor stands: the `index`-th of its role, in `layer`; `stacked` is one of several experts."""

    role: str
    index: int
    layer: int
    n_values: int
    stacked: bool
    facts: ModelFacts

    @property
    def depth(self) -> tuple[int, int]:
        """How far down, and of how many. Experts may be tensors of their own, so that counting would mislead."""
        if self.role not in (FFN_DOWN, FFN_GATE, FFN_UP):
            return self.index, self.n_values
        return (self.layer if self.facts.n_experts > 1 else self.index), self.facts.n_layers


When = Callable[[Place], bool]


def always(place: Place) -> bool:
    """Everywhere."""
    return True


def spread(place: Place) -> bool:
    """The first and last eighth of the layers and every third between: about half."""
    i, n = place.depth
    return i < n // 8 or i >= 7 * n // 8 or (i - n // 8) % 3 == 2


def early_8th(place: Place) -> bool:
    """The first eighth of the layers."""
    i, n = place.depth
    return i < n // 8


def early_16th(place: Place) -> bool:
    """The first sixteenth of the layers."""
    i, n = place.depth
    return i < n // 16


def middle(place: Place) -> bool:
    """All layers but the first and the last eighth."""
    i, n = place.depth
    return n // 8 <= i < 7 * n // 8


def first_2(place: Place) -> bool:
    """The first two of the role."""
    return place.index < 2


def first_4(place: Place) -> bool:
    """The first four of the role."""
    return place.index < 4


def shared_values(place: Place) -> bool:
    """Four or more query heads share a value head, so that values are small and count much."""
    return place.facts.gqa >= 4


def many_experts(place: Place) -> bool:
    """Four or more experts: attention is small beside them."""
    return place.facts.n_experts >= 4


def eight_experts(place: Place) -> bool:
    """Mixtral's shape."""
    return place.facts.n_experts == 8


def stacked(place: Place) -> bool:
    """A tensor that holds several experts."""
    return place.stacked


def falcon(place: Place) -> bool:
    """Falcon has rules of its own."""
    return place.facts.arch == "falcon"


def calibrated(place: Place) -> bool:
    """With an importance matrix."""
    return place.facts.calibrated


def uncalibrated(place: Place) -> bool:
    """Without an importance matrix."""
    return not place.facts.calibrated


def both(a: When, b: When) -> When:
    """Where two conditions hold."""
    return lambda place: a(place) and b(place)


@dataclass(frozen=True)
class Rule:
    """Tensors of `role` (of every role if empty) get `format` where `when` holds."""

    role: str
    format: str
    when: When = always


@dataclass(frozen=True)
class Recipe:
    """`file_type` is what `general.file_type` says. The first rule that fits decides, else `base`.

    `output` is for the output matrix, and for the embedding where that serves as one. `precious` tells whether values
    of a model of 80 layers never get fewer than five bits.
    """

    name: str
    file_type: int
    base: str
    output: str
    rules: tuple[Rule, ...] = ()
    precious: bool = True

    def choose(self, place: Place) -> str:
        """Format by the rules; neither the output's own nor what the shape demands."""
        return next((r.format for r in self.rules if r.role in ("", place.role) and r.when(place)), self.base)
