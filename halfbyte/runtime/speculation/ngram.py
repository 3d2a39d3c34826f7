"""`NgramProposer`: an answer that repeats what was said before goes on as it went on there.

Whether such guesses come true is known without computing anything for it: every token that is chosen anyway tells
whether it was the expected one. So nothing is spent to find out whether speculation would pay.
"""

from __future__ import annotations

from ..sequence import Sequence
from .hit_rates import LEVEL_OF, HitRates
from .ngram_index import TAIL, NgramIndex

PRIOR = (0.2, 0.3, 0.3, 0.5, 0.7, 0.85, 0.9)
"""How often expectations come true before anything was seen."""
MEMORY = 24.0
"""Observations of one sequence that count."""
LONG_MEMORY = 500.0
"""Of all sequences, for what a new one starts from."""
HOPELESS = 0.05
"""A draft that is reached and right more rarely is none."""
_TOKEN = 4


class NgramProposer:
    """See `Proposer`; a guess costs next to nothing."""

    def __init__(self) -> None:
        self._all = HitRates(LONG_MEMORY, PRIOR)
        self._trails: dict[int, Trail] = {}

    def chances(self, sequence: Sequence, most: int) -> list[float]:
        """See `Proposer`."""
        trail = self._trails.get(sequence.arrival)
        if trail is None:
            self.forget()
            trail = self._trails[sequence.arrival] = Trail(sequence, self._all)
        trail.follow()
        return trail.chances(most)

    def seconds(self, sequence: Sequence, answers: int) -> float:
        """See `Proposer`."""
        return 0.0

    def propose(self, lengths: list[tuple[Sequence, int]]) -> list[list[int]]:
        """See `Proposer`."""
        return [self._trails[sequence.arrival].guess(length) for sequence, length in lengths]

    def learn(self, sequence: Sequence, drafted: int, accepted: int) -> None:
        """Nothing: `Trail.follow` sees it by the tokens."""

    def forget(self) -> None:
        """See `Proposer`."""
        for arrival in [arrival for arrival, trail in self._trails.items() if trail.sequence.gone]:
            del self._trails[arrival]

    def close(self) -> None:
        """See `Proposer`."""
        self._trails.clear()


class Trail:
    """The place in a sequence's own past that it seems to repeat.

    `_at` is the place of the token that is expected next, 0 for none, and `_agreeing` how many tokens before it are
    those that came. After a miss the place is kept, for an answer that changed one token of a text and goes on with the
    rest, until a run of tokens is found elsewhere.
    """

    def __init__(self, sequence: Sequence, of_all: HitRates) -> None:
        self.sequence = sequence
        self._of_all = of_all
        self._own = HitRates(MEMORY, of_all.rates)
        self._known = sequence.num_tokens - 1
        self._index = NgramIndex(sequence.ids[: self._known])
        self._at = self._agreeing = 0

    def follow(self) -> None:
        """Take in the tokens that have come."""
        known, num_tokens = self._known, self.sequence.num_tokens
        first = max(known + 1 - TAIL, 0)
        raw = self.sequence.ids[first:num_tokens].tobytes()
        for end in range(known + 1, num_tokens + 1):
            if self._at:
                self._compare(end - 1)
            stop = _TOKEN * (end - first)
            place, length = self._index.push(raw[max(stop - _TOKEN * TAIL, 0) : stop], end)
            if length > self._agreeing:
                self._at, self._agreeing = place, length
        self._known = num_tokens

    def chances(self, most: int) -> list[float]:
        """See `Proposer`."""
        if not self._at or most <= 0:
            return []
        rates, agreeing = self._own.rates, self._agreeing
        levels = LEVEL_OF[agreeing : agreeing + most]
        own = [rates[level] for level in levels] + [rates[-1]] * (most - len(levels))
        reached = 1.0
        for ahead, chance in enumerate(own):
            reached *= chance
            if reached < HOPELESS:
                return own[:ahead]
        return own

    def guess(self, length: int) -> list[int]:
        """The tokens expected next; a text that repeats itself up to here is expected to go on doing so."""
        known: list[int] = self.sequence.ids[self._at : min(self._at + length, self._known)].tolist()
        while len(known) < length:
            known += known[: length - len(known)]
        return known

    def _compare(self, place: int) -> None:
        ids = self.sequence.ids
        hit = bool(ids[place] == ids[self._at])
        level = LEVEL_OF[min(self._agreeing, len(LEVEL_OF) - 1)]
        self._own.note(level, hit)
        self._of_all.note(level, hit)
        self._agreeing = self._agreeing + 1 if hit else 0
        self._at += 1
