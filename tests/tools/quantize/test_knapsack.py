"""The choice is the best there is within the budget."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from halfbyte.tools.quantize.knapsack import Option, choose


def random_items(rng, count, options, largest=50):
    return [
        [Option(int(size), float(cost)) for size, cost in zip(sizes, costs, strict=True)]
        for sizes, costs in zip(
            rng.integers(1, largest, (count, options)), rng.uniform(0, 1, (count, options)), strict=True
        )
    ]


def totals(items, found):
    picked = [options[which] for options, which in zip(items, found, strict=True)]
    return sum(option.size for option in picked), sum(option.cost for option in picked)


@pytest.mark.parametrize("seed", range(12))
def test_no_choice_of_all_is_better(seed):
    rng = np.random.default_rng(seed)
    items = random_items(rng, 5, 4)
    budget = int(rng.integers(60, 200))
    every = [totals(items, found) for found in itertools.product(range(4), repeat=5)]
    fitting = [cost for size, cost in every if size <= budget]
    found = choose(items, budget)
    if not fitting:
        assert found is None
        return
    size, cost = totals(items, found)
    assert size <= budget
    assert cost == pytest.approx(min(fitting))


def test_a_budget_of_many_bytes_is_kept_and_used_up_nearly():
    rng = np.random.default_rng(1)
    items = random_items(rng, 60, 6, largest=10**8)
    smallest = sum(min(option.size for option in options) for options in items)
    budget = smallest + 10**9
    size, cost = totals(items, choose(items, budget))
    assert size <= budget
    more, less = totals(items, choose(items, budget * 2)), totals(items, choose(items, smallest))
    assert more[1] < cost < less[1]
    # A hull of sizes and costs bounds what any choice can reach.
    assert cost <= bound(items, budget) * 1.01


def bound(items, budget):
    """Least cost by fractions: `max over price of sum min(cost + price * size) - price * budget`."""
    prices = np.geomspace(1e-12, 1e-6, 400)
    return max(
        sum(min(o.cost + price * o.size for o in options) for options in items) - price * budget for price in prices
    )


def test_a_budget_below_the_smallest_has_no_choice():
    items = [[Option(10, 1.0), Option(20, 0.0)], [Option(5, 1.0)]]
    assert choose(items, 14) is None
    assert choose(items, 15) == [0, 0]
    assert choose(items, 25) == [1, 0]


def test_nothing_to_choose_is_a_choice():
    assert choose([], 10) == []
