"""The line of figures below an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..runtime.timings import Timings


def speed_line(timings: Timings) -> str:
    """Fixed wording, so that it can be searched for."""
    return (
        f"[prompt {timings.prompt_tokens} tokens ({timings.cached_tokens} cached), "
        f"prefill {timings.prefill_tok_s:.0f} tok/s, "
        f"answer {timings.completion_tokens} tokens, decode {timings.decode_tok_s:.1f} tok/s]"
    )
