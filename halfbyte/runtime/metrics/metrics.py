"""`Metrics`: what an engine did so far and how it does now."""

from __future__ import annotations

from dataclasses import dataclass

ENDS = ("stop", "length", "read", "cancelled", "deadline", "failed")
"""Ways in which a request ends."""
REJECTIONS = ("bad_prompt", "context_exceeded", "kv_budget_exceeded", "queue_full")
"""Reasons for which one is not taken."""
PHASES = ("schedule", "move", "run", "sample", "commit", "emit")
"""What a step consists of, in order."""


@dataclass(frozen=True)
class Percentiles:
    """Seconds that half, nine in ten and 99 in 100 of the last values stayed within; 0 where there are none.

    `count` is the number of all values ever.
    """

    p50: float
    p90: float
    p99: float
    count: int


@dataclass(frozen=True)
class Metrics:
    """A snapshot of `LLM.metrics`. Counts are of all time, rates of the last ten seconds.

    `waiting`, `running` and `swapped` are numbers of requests; `pages_free + pages_cached + pages_used` is always the
    same. Of the `prompt_tokens` of requests that began, `cached_tokens` had been computed before. `first_token` runs
    from the call to the first token, `inter_token` between tokens of an answer, both over the last 4096 values.

    `ended` counts by reason: "stop" (an end token or a stop string), "length", "read" (`logits` and `score`),
    "cancelled" (by the caller), "deadline" (`timeout` was missed), "failed". `rejected` were never begun: "bad_prompt"
    (empty, or unknown tokens), "context_exceeded", "kv_budget_exceeded", "queue_full". `preempted` ones lost their
    pages to more urgent ones: "swap" or "recompute". Of the `drafted_tokens` of speculation `accepted_tokens` were
    right.

    `steps` of the engine took `phase_s` seconds: "schedule", "move" (swap and copies), "run" (the model), "sample",
    "commit", "emit".
    """

    waiting: int
    running: int
    swapped: int
    pages_free: int
    pages_cached: int
    pages_used: int
    prompt_tokens: int
    cached_tokens: int
    generated_tokens: int
    prompt_tok_s: float
    generated_tok_s: float
    first_token: Percentiles
    inter_token: Percentiles
    ended: dict[str, int]
    rejected: dict[str, int]
    preempted: dict[str, int]
    drafted_tokens: int
    accepted_tokens: int
    steps: int
    phase_s: dict[str, float]

    @property
    def prefix_hit_rate(self) -> float:
        """Share of prompt tokens that needed no computing; 0 before the first."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    @property
    def acceptance_rate(self) -> float:
        """Share of drafted tokens that were right; 0 before the first."""
        return self.accepted_tokens / self.drafted_tokens if self.drafted_tokens else 0.0
