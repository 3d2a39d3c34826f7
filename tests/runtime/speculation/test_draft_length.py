"""How many drafts pay, by chances and times."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfbyte.runtime.speculation import draft_length
from halfbyte.runtime.speculation.draft_length import MARGIN, may_pay

FREE = [1.0] * 16
PRICEY = [1.0 + n for n in range(16)]
"""A step of two tokens takes twice as long: nothing can pay."""


def draft_lengths(chances, seconds, answers):
    return draft_length.draft_lengths(chances, np.array(seconds), answers)


def worth(chances, seconds, lengths, answers):
    gain = 0.0
    for own, length in zip(chances, lengths, strict=True):
        gain += math.log(1 + sum(math.prod(own[:n]) for n in range(1, length + 1)))
    return gain - answers * math.log(seconds[sum(lengths)] / seconds[0])


def test_all_where_steps_cost_nothing_more():
    assert draft_lengths([[0.9] * 5, [], [0.1]], FREE, 3) == [5, 0, 1]


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_none_where_tokens_cost_as_much_together_as_alone(chance):
    assert draft_lengths([[chance] * 15], PRICEY, 1) == [0]


def test_longer_drafts_where_more_are_right():
    seconds = [1 + 0.3 * n for n in range(16)]
    lengths = [draft_lengths([[chance] * 15], seconds, 1)[0] for chance in (0.2, 0.6, 0.8, 0.95, 1.0)]
    assert lengths == sorted(lengths)
    assert (lengths[0], lengths[-1]) == (0, 15)


def test_one_answers_drafts_must_make_up_for_slowing_the_others_down():
    seconds = [1 + 0.3 * n for n in range(16)]
    assert draft_lengths([[0.9] * 3], seconds, 1)[0] > 0
    assert draft_lengths([[0.9] * 3, [], [], []], seconds, 4) == [0, 0, 0, 0]


def test_no_more_than_there_are_times_for():
    assert sum(draft_lengths([[1.0] * 5, [1.0] * 5], [1.0, 1.0, 1.0], 2)) == 2
    assert draft_lengths([[1.0] * 5], [1.0], 1) == [0]


times = st.lists(st.floats(0.0, 1.0), min_size=6, max_size=6).map(lambda more: [1.0 + sum(more[:n]) for n in range(7)])
chance_lists = st.lists(st.lists(st.floats(0.0, 1.0), max_size=3), min_size=1, max_size=2)


@settings(deadline=None)
@given(chance_lists, times, st.integers(0, 2))
def test_no_other_choice_is_better(chances, seconds, others):
    answers = len(chances) + others
    found = worth(chances, seconds, draft_lengths(chances, seconds, answers), answers)
    choices = product(*(range(len(own) + 1) for own in chances))
    best = max(worth(chances, seconds, lengths, answers) for lengths in choices)
    assert found >= 0
    assert found == 0 or may_pay(chances, min(seconds[1:]), answers)
    assert found == pytest.approx(best) or best <= MARGIN + 1e-9
