"""What `Pace` makes of machines of different kinds."""

from __future__ import annotations

from statistics import mean

import pytest

from halfbyte.runtime.pace import TILE, Pace


def read(machine, *, stretch=2.5, answers=2, steps=200):
    """Sizes and seconds of steps with prompts on a machine: a function from tokens to what they add to a step."""
    pace, found = Pace(stretch), []
    for _ in range(steps):
        tokens = pace.prompt_tokens(answers)
        seconds = 1.0 + (machine(tokens) if tokens else 0.0)
        pace.note(answers, tokens, seconds)
        if tokens:
            found.append((tokens, seconds))
    return found


@pytest.mark.parametrize("per_token", [0.001, 0.01, 0.03])
def test_where_every_token_costs_as_much_a_step_takes_what_it_may(per_token):
    steps = read(lambda tokens: per_token * tokens)[50:]
    assert max(seconds for _, seconds in steps) < 2.6 + 2 * TILE * per_token
    assert mean(seconds for _, seconds in steps) > 2.0


def test_a_dear_token_still_comes_a_tile_at_a_time():
    steps = read(lambda tokens: 1.0 * tokens)
    assert sorted(tokens for tokens, _ in steps)[len(steps) // 2] <= 2 * TILE


def test_a_cost_that_every_size_has_is_spread_over_many_tokens():
    """On a GPU reading 16 tokens takes as long as 100; the time must not go into steps of 16."""
    steps = read(lambda tokens: 1.7 + 0.002 * tokens)[50:]
    assert mean(tokens for tokens, _ in steps) > 400
    assert max(seconds for _, seconds in steps) < 2 * 1.7 * 2 + 1


def test_a_base_below_the_stretch_leaves_room_for_less():
    steps = read(lambda tokens: 0.5 + 0.01 * tokens)[50:]
    assert 60 < mean(tokens for tokens, _ in steps) < 110
    assert sorted(seconds for _, seconds in steps)[int(0.8 * len(steps))] < 2.7


def test_a_machine_that_gets_slower_is_noticed():
    pace = Pace(2.5)
    for step in range(300):
        tokens = pace.prompt_tokens(1)
        pace.note(1, tokens, 1.0 + tokens * (0.002 if step < 150 else 0.02))
    assert pace.prompt_tokens(1) < 120


def test_without_answers_or_a_stretch_as_much_as_fits():
    assert Pace(2.5).prompt_tokens(0) is None
    assert Pace(float("inf")).prompt_tokens(3) is None
