"""`usage`: how many tokens answers took, and how fast they came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ..runtime.timings import Timings


def usage(timings: Sequence[Timings], thought: int = 0) -> dict[str, Any]:
    """Tokens of all answers to one prompt, which counts once; `thought` of them were thinking."""
    prompt = timings[0].prompt_tokens
    completion = sum(one.completion_tokens for one in timings)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        # Where several answers share a prompt the first computes it and the others find it.
        "prompt_tokens_details": {"cached_tokens": min(one.cached_tokens for one in timings)},
        "completion_tokens_details": {
            "reasoning_tokens": thought,
            "accepted_prediction_tokens": sum(one.accepted_tokens for one in timings),
        },
    }


def read_only(prompt: int) -> dict[str, Any]:
    """Tokens of a prompt that nothing was written to."""
    return {"prompt_tokens": prompt, "completion_tokens": 0, "total_tokens": prompt}


def add_usage(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The usage of answers to several prompts together."""
    total = dict(parts[0])
    for part in parts[1:]:
        for name, value in part.items():
            inner = isinstance(value, dict)
            total[name] = {key: total[name][key] + value[key] for key in value} if inner else total[name] + value
    return total


def speeds(timings: Timings) -> dict[str, Any]:
    """Counts, seconds and rates of one answer; a field that OpenAI's answers do not have."""
    return asdict(timings) | {"prefill_tok_s": timings.prefill_tok_s, "decode_tok_s": timings.decode_tok_s}
