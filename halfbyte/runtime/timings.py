"""`Timings`: where the time of one request went."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Timings:
    """Counts of tokens, and seconds.

    `cached_tokens` of the `prompt_tokens` were computed by an earlier request. `first_token_s` runs from the call to
    the first token, waiting for other requests included; `prefill_s` from the first step to the first token; `decode_s`
    from the first token to the last. `drafted_tokens` were guessed and computed along, `accepted_tokens` of them right:
    see `speculation` in `LoadConfig`.
    """

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    first_token_s: float
    prefill_s: float
    decode_s: float
    drafted_tokens: int = 0
    accepted_tokens: int = 0

    @property
    def prefill_tok_s(self) -> float:
        """Prompt tokens computed a second; 0 where no time was measured."""
        return (self.prompt_tokens - self.cached_tokens) / self.prefill_s if self.prefill_s > 0 else 0.0

    @property
    def decode_tok_s(self) -> float:
        """Tokens a second after the first; 0 where there was one at most."""
        return (self.completion_tokens - 1) / self.decode_s if self.decode_s > 0 else 0.0
