"""Times of steps: what was measured, lines between, and how it goes out of date."""

from __future__ import annotations

import pytest

from halfbyte.runtime.speculation.step_times import CALM, SLOPE, STALE, TRUST, StepTimes


def times(answers=1, **measured):
    it = StepTimes(answers)
    for drafts, seconds in measured.items():
        it.note(int(drafts[1:]), seconds)
    return it


def test_nothing_is_known_before_a_step_without_drafts():
    assert times().base is None


def test_lines_go_through_what_was_measured_and_on():
    assert times(_0=1.0, _2=2.0, _4=2.2).curve(6) == pytest.approx([1.0, 1.5, 2.0, 2.1, 2.2, 2.5, 2.8])


@pytest.mark.parametrize(("answers", "second"), [(1, 1.5), (4, 1.125)])
def test_before_any_draft_a_draft_costs_half_an_answers_token(answers, second):
    assert times(answers, _0=1.0).curve(1).tolist() == [1.0, second]


def test_a_hiccup_counts_for_little():
    it = times(_0=1.0)
    it.note(0, 1000.0)
    assert it.base == 1.25
    for _ in range(20):
        it.note(0, 1.0)
    assert it.base == pytest.approx(1.0, rel=0.01)
    it.note(4, 1000.0)
    assert it.curve(4)[4] == pytest.approx(2 * (1 + 4 * SLOPE), rel=0.01)


def test_a_step_soon_after_drafts_counts_only_where_it_was_fast():
    it = times(_0=1.0, _3=1.5)
    assert not it.calm
    it.note(0, 1.8)
    assert it.base == 1.0
    it.note(0, 0.8)
    assert it.base == 0.8
    for _ in range(CALM - 2):
        it.note(0, 1.8)
    assert it.calm
    assert it.base == 0.8
    it.note(0, 1.8)
    assert it.base == pytest.approx(1.0)


def test_a_step_without_drafts_is_due_now_and_then():
    it = times(_0=1.0)
    for _ in range(TRUST):
        assert it.base == 1.0
        it.note(3, 1.5)
    assert it.base is None
    it.note(0, 0.5)
    assert it.base == 0.5


def test_bad_luck_is_forgotten():
    it = times(_0=1.0, _1=2.5, _2=1.2)
    assert it.curve(1)[1] == 2.5
    for _ in range(STALE):
        it.note(0, 1.0)
    it.note(2, 1.2)
    assert it.curve(1)[1] == pytest.approx(1.1)


@pytest.mark.parametrize(
    ("measured", "least"),
    [({"_0": 1.0}, 1.5), ({"_0": 1.0, "_4": 2.0}, 1.25), ({"_0": 1.0, "_2": 2.0, "_3": 1.1}, 1.1)],
)
def test_the_least_that_drafts_can_cost(measured, least):
    it = times(**measured)
    assert it.least() == least == it.curve(8)[1:].min()
