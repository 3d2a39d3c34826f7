"""`snapshot`: the counts of an engine as they are now."""

from __future__ import annotations

from dataclasses import asdict
from time import perf_counter
from typing import TYPE_CHECKING

from .meter import Meter
from .metrics import Metrics

if TYPE_CHECKING:
    from ..engine import EngineStatus


def snapshot(meter: Meter, status: EngineStatus, rejected: dict[str, int]) -> Metrics:
    """Taken while the engine runs on."""
    now = perf_counter()
    return Metrics(
        **asdict(status),
        prompt_tokens=meter.prompt_tokens,
        cached_tokens=meter.cached_tokens,
        generated_tokens=meter.generated_tokens,
        prompt_tok_s=meter.prompt_rate.per_second(now),
        generated_tok_s=meter.generated_rate.per_second(now),
        first_token=meter.first_token.percentiles(),
        inter_token=meter.inter_token.percentiles(),
        ended=dict(meter.ended),
        rejected=rejected,
        preempted=dict(meter.preempted),
        drafted_tokens=meter.drafted,
        accepted_tokens=meter.accepted,
        steps=meter.steps,
        phase_s=dict(meter.phase_s),
    )
