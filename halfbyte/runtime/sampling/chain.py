"""`SAMPLERS`: every step by its name, and which of them a sequence needs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from . import truncation
from .candidates import Candidates, best_of
from .custom import Custom, custom
from .dry import dry
from .params import SamplingParams
from .penalties import penalties
from .temperature import dynamic_temperature, temperature
from .uniform import EXCLUDE, uniform
from .xtc import MOST_FOR_TWO, xtc

if TYPE_CHECKING:
    from .sampler import Sampler

Run = Callable[[Candidates, "Sampler"], Candidates]


class Step(NamedTuple):
    """`needed` says whether parameters make it change anything; a step that `cuts` leaves candidates out."""

    run: Run
    needed: Callable[[SamplingParams], bool]
    cuts: bool = True


def chain(params: SamplingParams) -> list[Run]:
    """The steps that change anything, in their order.

    Where the best token is taken, those that neither move it nor come before a function are left out; where mirostat
    draws, those that cut.
    """
    last_function = max((place for place, step in enumerate(params.samplers) if callable(step)), default=-1)
    steps: list[Run] = []
    for place, step in enumerate(params.samplers):
        if callable(step):
            steps.append(partial(_custom, step=step))
        elif _runs(step, params, place < last_function):
            steps.append(SAMPLERS[step].run)
    return steps


def _runs(name: str, params: SamplingParams, before_function: bool) -> bool:
    step = SAMPLERS[name]
    if not step.needed(params):
        return False
    if params.greedy:
        return name in MOVING or (before_function and name in HARMLESS)
    return not (params.mirostat and step.cuts)


MOVING = ("penalties", "dry")
HARMLESS = ("top_n_sigma", "top_k", "top_p", "min_p")
"""Steps that never leave out the best."""


def ranked(candidates: Candidates, sampler: Sampler) -> Candidates:
    """All of the candidates, best first."""
    return best_of(candidates, 0, sampler.select)


def _custom(candidates: Candidates, sampler: Sampler, step: Custom) -> Candidates:
    return custom(candidates, step)


def _penalties(candidates: Candidates, sampler: Sampler) -> Candidates:
    assert sampler.window is not None
    return penalties(candidates, sampler.window, sampler.params)


def _dry(candidates: Candidates, sampler: Sampler) -> Candidates:
    assert sampler.repetitions is not None
    return dry(candidates, sampler.repetitions, sampler.params)


def _top_n_sigma(candidates: Candidates, sampler: Sampler) -> Candidates:
    return truncation.top_n_sigma(candidates, sampler.params.top_n_sigma, sampler.select)


def _top_k(candidates: Candidates, sampler: Sampler) -> Candidates:
    return best_of(candidates, sampler.params.top_k, sampler.select)


def _typical_p(candidates: Candidates, sampler: Sampler) -> Candidates:
    return truncation.typical_p(ranked(candidates, sampler), sampler.params.typical_p)


def _top_p(candidates: Candidates, sampler: Sampler) -> Candidates:
    return truncation.top_p(candidates, sampler.params.top_p, sampler.select)


def _min_p(candidates: Candidates, sampler: Sampler) -> Candidates:
    return truncation.min_p(candidates, sampler.params.min_p, sampler.select)


def _xtc(candidates: Candidates, sampler: Sampler) -> Candidates:
    u = uniform(sampler.seed, sampler.index, EXCLUDE)
    if u >= sampler.params.xtc_probability:
        return candidates
    return xtc(ranked(candidates, sampler), sampler.params.xtc_threshold)


def _temperature(candidates: Candidates, sampler: Sampler) -> Candidates:
    low, high = sampler.params.temperatures
    if low == high:
        return temperature(candidates, high, sampler.select)
    candidates = ranked(candidates, sampler)
    t = dynamic_temperature(candidates, low, high, sampler.params.dynatemp_exponent)
    return temperature(candidates, t, sampler.select)


SAMPLERS: dict[str, Step] = {
    "penalties": Step(_penalties, lambda params: params.penalises, cuts=False),
    "dry": Step(_dry, lambda params: params.breaks_repetitions, cuts=False),
    "top_n_sigma": Step(_top_n_sigma, lambda params: params.top_n_sigma > 0),
    "top_k": Step(_top_k, lambda params: params.top_k > 0),
    "typical_p": Step(_typical_p, lambda params: params.typical_p < 1),
    "top_p": Step(_top_p, lambda params: params.top_p < 1),
    "min_p": Step(_min_p, lambda params: params.min_p > 0),
    "xtc": Step(_xtc, lambda params: params.xtc_probability > 0 and params.xtc_threshold <= MOST_FOR_TWO),
    "temperature": Step(_temperature, lambda params: params.temperatures != (1.0, 1.0), cuts=False),
}
