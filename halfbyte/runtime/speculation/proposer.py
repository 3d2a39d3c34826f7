"""`Proposer`: who guesses the next tokens of sequences."""

from __future__ import annotations

from typing import Protocol

from ..sequence import Sequence


class Proposer(Protocol):
    """Reads the first `num_tokens` of a sequence's `ids`, and keeps what it knows of each sequence until `forget`.

    Called by the engine's thread, once a step for each sequence that is answered: `chances`, then perhaps `propose`.
    """

    def chances(self, sequence: Sequence, most: int) -> list[float]:
        """How likely each of up to `most` drafts is right, given that those before it are; short where hopeless."""

    def seconds(self, sequence: Sequence, answers: int) -> float:
        """What a draft costs to make, beside others for `answers` sequences; computing it along is not counted."""

    def propose(self, lengths: list[tuple[Sequence, int]]) -> list[list[int]]:
        """For each sequence up to as many tokens as asked for; none where it has to read before it can guess."""

    def learn(self, sequence: Sequence, drafted: int, accepted: int) -> None:
        """Hear that `drafted` tokens were computed along and the first `accepted` of them were right."""

    def forget(self) -> None:
        """Let go of sequences that are gone."""

    def close(self) -> None:
        """Free memory and threads; may be called twice."""
