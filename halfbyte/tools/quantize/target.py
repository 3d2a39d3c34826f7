"""`fit_target`: formats for all tensors so that the file has a given size and its answers move least."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...errors import ConfigError
from ...formats import GGUFFile
from ...quant import BlockFormat
from ...quant.recipes import recipe_named
from .choices import Choices
from .knapsack import Option, choose
from .override import spell
from .plan import Plan, make_plan
from .sensitivity import Candidate

_TRIES = 8


@dataclass(frozen=True)
class Target:
    """At most `file_bytes` for the file, or `bits_per_weight` on average over all tensors."""

    file_bytes: int | None = None
    bits_per_weight: float | None = None

    def excess(self, plan: Plan) -> int:
        """Bytes by which a plan misses it; not positive where it is met."""
        if self.file_bytes is not None:
            return plan.file_bytes - self.file_bytes
        assert self.bits_per_weight is not None
        return math.ceil(plan.tensor_bytes - self.bits_per_weight * plan.n_weights / 8)


@dataclass(frozen=True)
class Fitted:
    """The plan, the choices that make it, and the divergence that was foreseen, in nats a token."""

    plan: Plan
    choices: Choices
    divergence: float


def fit_target(
    file: GGUFFile,
    choices: Choices,
    candidates: Mapping[str, Sequence[Candidate]],
    target: Target,
    calibration: Mapping[str, object] | None = None,
) -> Fitted:
    """The best formats of `candidates`; tensors that have none follow `choices`.

    Raises `ConfigError` where even the smallest formats are too large, naming the size they would have.
    """
    names = list(candidates)
    items = [[Option(each.n_bytes, each.divergence) for each in candidates[name]] for name in names]
    smallest = [0] * len(names)
    fitted = _plan(file, choices, candidates, names, smallest, calibration)
    # What stays as it is, metadata and padding count too, so the budget of the rest is found by trying.
    budget = _size(items, smallest) - target.excess(fitted.plan)
    for _ in range(_TRIES):
        found = choose(items, budget)
        if found is None:
            break
        fitted = _plan(file, choices, candidates, names, found, calibration)
        excess = target.excess(fitted.plan)
        if excess <= 0:
            return fitted
        budget = min(budget, _size(items, found)) - excess
    least = _plan(file, choices, candidates, names, smallest, calibration).plan
    raise ConfigError(
        f"the target is too small: this model takes at least {least.file_bytes} bytes "
        f"({least.bits_per_weight:.3f} bits a weight)",
        key="target",
    )


def _size(items: Sequence[Sequence[Option]], found: Sequence[int]) -> int:
    return sum(options[which].size for options, which in zip(items, found, strict=True))


def _plan(
    file: GGUFFile,
    choices: Choices,
    candidates: Mapping[str, Sequence[Candidate]],
    names: Sequence[str],
    found: Sequence[int],
    calibration: Mapping[str, object] | None,
) -> Fitted:
    chosen = {name: candidates[name][which] for name, which in zip(names, found, strict=True)}
    formats: dict[str, BlockFormat] = {name: each.format for name, each in chosen.items()}
    n_bytes: Counter[str] = Counter()
    for each in chosen.values():
        n_bytes[each.format.name] += each.n_bytes
    main = recipe_named(n_bytes.most_common(1)[0][0]) if chosen else choices.recipe
    mixed = replace(choices, recipe=main, overrides=(*choices.overrides, *spell(formats)))
    plan = make_plan(file, mixed, calibration)
    return Fitted(plan, mixed, sum(each.divergence for each in chosen.values()))
