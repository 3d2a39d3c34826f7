"""Speculation stops where it does not pay and comes back where it does."""

from __future__ import annotations

import random
from itertools import islice

import numpy as np
import pytest

from halfbyte.runtime.sampling.params import SamplingParams
from halfbyte.runtime.sampling.sampler import Sampler
from halfbyte.runtime.sequence import Chosen, Sequence
from halfbyte.runtime.speculation.ngram import NgramProposer
from halfbyte.runtime.speculation.speculation import Speculation
from halfbyte.runtime.speculation.stake import START
from halfbyte.runtime.step import Share, StepPlan

PAGE_LEN = 16


class Always:
    """Says what comes next as `says` has it, and hopes for `chance`."""

    def __init__(self, says, chance=0.9):
        self.says, self.chance = says, chance

    def chances(self, sequence, most):
        return [self.chance] * min(most, 4)

    def seconds(self, sequence, answers):
        return 0.0

    def propose(self, lengths):
        return [[self.says] * length for _, length in lengths]

    def learn(self, sequence, drafted, accepted):
        self.chance += 0.1 * ((accepted > 0) - self.chance)

    def forget(self):
        pass

    def close(self):
        pass


class Machine:
    """Steps of made-up times: 1 for one token, `more` for each one behind."""

    def __init__(self, proposer, streams, more=0.3):
        self.speculation = Speculation([proposer])
        self.more = more
        self.sequences = [self.sequence(iter(stream)) for stream in streams]
        self.seconds = 0.0
        self.tokens = 0

    @staticmethod
    def sequence(stream):
        sampler = Sampler(SamplingParams(), lambda logits, k: None, prompt=np.zeros(1, np.int32), capacity=1)
        it = Sequence(np.zeros(1, np.int32), max_len=30000, page_len=PAGE_LEN, sampler=sampler)
        it.stream = stream
        return it

    def step(self):
        self.speculation.propose(self.sequences)
        shares = [Share(s, 1 + s.drafts, 1 + s.drafts) for s in self.sequences]
        drafts = sum(s.drafts for s in self.sequences)
        seconds = 1.0 + self.more * drafts
        grown = {s.arrival: self.grow(s) for s in self.sequences}
        for s in self.sequences:
            s.drafts = len(grown[s.arrival]) - 1
        self.speculation.learn(StepPlan(shares), grown, seconds)
        for s in self.sequences:
            s.num_computed, s.drafts = s.num_tokens - 1, 0
        self.seconds += seconds
        self.tokens += sum(map(len, grown.values()))
        return drafts

    def grow(self, sequence):
        tokens = []
        while True:
            token, expected = next(sequence.stream), int(sequence.ids[sequence.num_tokens])
            hoped_for = len(tokens) < sequence.drafts
            sequence.accept(token)
            tokens.append(Chosen(token))
            if not (hoped_for and token == expected):
                return tokens

    def run(self, steps):
        """Tokens a unit of time, for each sequence."""
        before = self.seconds, self.tokens
        for _ in range(steps):
            self.step()
        return (self.tokens - before[1]) / (self.seconds - before[0]) / len(self.sequences)


def noise(seed=0, vocab=2000):
    draw = random.Random(seed)
    while True:
        yield draw.randrange(vocab)


def loop(period=40):
    while True:
        yield from range(period)


def words(seed=0):
    """Common words follow each other, so that short runs repeat all the time and say little."""
    draw = random.Random(seed)
    while True:
        yield min(int(draw.paretovariate(0.7)), 3000)


class TestNgram:
    def test_text_that_repeats_is_sped_up(self):
        assert Machine(NgramProposer(), [loop()]).run(300) > 1.8

    @pytest.mark.parametrize("stream", [noise, words, lambda: noise(vocab=4)], ids=["noise", "words", "few"])
    @pytest.mark.parametrize("more", [0.1, 0.3, 0.6, 1.0])
    def test_text_that_does_not_is_not_slowed_down(self, stream, more):
        assert Machine(NgramProposer(), [stream()], more).run(3000) > 0.98

    def test_text_that_begins_to_repeat_is_noticed_and_so_is_its_end(self):
        def mixed():
            yield from islice(noise(), 500)
            yield from islice(loop(), 500)
            yield from noise(1)

        machine = Machine(NgramProposer(), [mixed()])
        machine.run(450)
        assert max(machine.step() for _ in range(120)) > 3
        while machine.sequences[0].num_tokens < 1100:
            machine.step()
        assert machine.run(1000) > 0.99

    def test_where_steps_of_many_tokens_cost_too_much_nothing_is_drafted(self):
        machine = Machine(NgramProposer(), [loop()], more=1.0)
        machine.run(200)
        assert machine.run(500) > 0.985

    def test_neighbours_are_not_held_up_for_one(self):
        machine = Machine(NgramProposer(), [loop(), *(noise(seed) for seed in range(7))], more=0.3)
        machine.run(300)
        assert [machine.step() for _ in range(20)] == [0] * 20
        machine = Machine(NgramProposer(), [loop() for _ in range(8)], more=0.01)
        assert machine.run(300) > 2


class TestAnyProposer:
    def test_one_that_is_always_wrong_is_given_up(self):
        machine = Machine(Always(says=7000), [noise()])
        machine.run(20)
        assert [machine.step() for _ in range(50)] == [0] * 50

    def test_one_that_never_learns_costs_its_stake_and_a_hundredth(self):
        proposer = Always(says=7000)
        proposer.learn = lambda sequence, drafted, accepted: None
        machine = Machine(proposer, [noise()])
        machine.run(4000)
        assert machine.seconds <= machine.tokens * 1.01 + START + 2

    def test_it_recovers(self):
        proposer = Always(says=0)
        machine = Machine(proposer, [loop(1)])
        assert machine.run(200) > 1.5
        machine.sequences[0].stream = noise()
        machine.run(200)
        assert [machine.step() for _ in range(20)] == [0] * 20
        proposer.chance, machine.sequences[0].stream = 0.7, loop(1)
        assert machine.run(1000) > 1.5
