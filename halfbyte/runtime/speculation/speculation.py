"""`Speculation`: drafts for the sequences of a step, where they pay."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from time import perf_counter
from typing import Any

import numpy as np

from ..limits import MOST_DRAFTS
from ..sequence import Sequence
from ..step import Share, StepPlan
from .draft_length import draft_lengths, may_pay
from .proposer import Proposer
from .stake import Stake
from .step_times import StepTimes

log = logging.getLogger("halfbyte.speculation")


_Guess = tuple[Proposer, list[float]]
"""Who guesses, and how likely each draft is right."""


@dataclass
class SpeculationCounts:
    """Tokens since the engine started: computed along, and those of them that were right."""

    drafted: int = 0
    accepted: int = 0


class Speculation:
    """Asks `proposers` for drafts, the first one that has any for a sequence, and learns from every step what pays.

    Answers are the same with it and without: whatever goes wrong in here turns it off and no more. It stands back while
    prompts are read: those fill the steps anyway. Used by the engine's thread alone.
    """

    def __init__(self, proposers: list[Proposer], *, max_draft: int = MOST_DRAFTS) -> None:
        assert 0 < max_draft <= MOST_DRAFTS
        self.counts = SpeculationCounts()
        self._proposers = proposers
        self._max_draft = max_draft
        self._times: dict[int, StepTimes] = {}
        self._stake = Stake()
        self._made = 0.0

    def propose(self, running: list[Sequence]) -> None:
        """Put drafts behind the tokens of running sequences."""
        if not (self._proposers and running) or any(s.num_new != 1 or s.sampler is None for s in running):
            return
        try:
            self._propose(running)
        except Exception as error:
            self._turn_off(running, error)

    def learn(self, plan: StepPlan, grown: Mapping[int, list[Any]], seconds: float) -> None:
        """Hear what a step took and, by arrival, the tokens it brought."""
        if not (self._proposers and plan.shares) or any(_reads_prompt(share) for share in plan.shares):
            return
        try:
            self._learn(plan, grown, seconds)
        except Exception as error:
            self._turn_off([], error)

    def forget(self) -> None:
        """Let go of sequences that are gone."""
        for proposer in self._proposers:
            proposer.forget()

    def close(self) -> None:
        """Free what the proposers hold."""
        for proposer in self._proposers:
            proposer.close()
        self._proposers = []

    def _propose(self, running: list[Sequence]) -> None:
        # Even where nothing can be proposed now, proposers see the tokens that have come.
        guesses = [self._best_guess(sequence) for sequence in running]
        chances = [own for _, own in guesses]
        most = sum(map(len, chances))
        times = self._times_of(len(running))
        base = times.base
        if base is None or most == 0 or not may_pay(chances, times.least() / base, len(running)):
            return
        making = max(
            proposer.seconds(sequence, len(running))
            for sequence, (proposer, own) in zip(running, guesses, strict=True)
            if own
        )
        seconds = times.curve(most) + making * np.arange(most + 1)
        within = self._stake.allows(seconds / base - 1)
        lengths = draft_lengths(chances, seconds[:within], len(running))
        for proposer in self._proposers:
            asked = [
                (sequence, length)
                for sequence, (author, _), length in zip(running, guesses, lengths, strict=True)
                if length and author is proposer
            ]
            if asked:
                started = perf_counter()
                self._put(asked, proposer.propose(asked))
                self._made += perf_counter() - started

    def _best_guess(self, sequence: Sequence) -> _Guess:
        most = min(self._max_draft, sequence.max_len - sequence.num_tokens - 1)
        guesses = [(proposer, proposer.chances(sequence, most)) for proposer in self._proposers]
        return guesses[0] if len(guesses) == 1 else max(guesses, key=_expected)

    def _put(self, asked: list[tuple[Sequence, int]], drafts: list[list[int]]) -> None:
        for (sequence, _), tokens in zip(asked, drafts, strict=True):
            end = next((n for n, token in enumerate(tokens, 1) if token in sequence.eog_ids), len(tokens))
            sequence.propose(tokens[:end])

    def _learn(self, plan: StepPlan, grown: Mapping[int, list[Any]], seconds: float) -> None:
        answers, drafted, tokens = len(plan.shares), 0, 0
        for sequence, _, rows in plan.shares:
            accepted = sequence.drafts if sequence.arrival in grown else 0
            tokens += 1 + accepted
            if rows > 1:
                drafted += rows - 1
                self._count(sequence, rows - 1, accepted)
        times = self._times_of(answers)
        base = times.base
        if base is not None and (drafted or not times.calm):
            # To read a prompt for the sake of drafting is an investment; what drafts cost is a loss.
            self._stake.note(tokens / answers - (seconds + (self._made if drafted else 0.0)) / base)
        else:
            self._stake.note(0.0)
        times.note(drafted, seconds)
        self._made = 0.0

    def _count(self, sequence: Sequence, drafted: int, accepted: int) -> None:
        self.counts.drafted += drafted
        self.counts.accepted += accepted
        sequence.num_drafted += drafted
        sequence.num_accepted += accepted
        for proposer in self._proposers:
            proposer.learn(sequence, drafted, accepted)

    def _times_of(self, answers: int) -> StepTimes:
        times = self._times.get(answers)
        if times is None:
            times = self._times[answers] = StepTimes(answers)
        return times

    def _turn_off(self, running: list[Sequence], error: Exception) -> None:
        log.warning("speculation is off from here on; answers stay the same: %s: %s", type(error).__name__, error)
        log.debug("speculation failed", exc_info=True)
        for sequence in running:
            sequence.drafts = 0
        self.close()


def _reads_prompt(share: Share) -> bool:
    return share.sequence.sampler is None or share.num_tokens > share.num_rows


def _expected(guess: _Guess) -> float:
    """Drafts that will be right if all are computed."""
    return float(sum(accumulate(guess[1], mul)))
