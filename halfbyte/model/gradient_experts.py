"""The ops of a mixture of experts in reverse, in NumPy float32. Which experts were chosen counts as given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .program import Combine, Dispatch, ExpertLinear, MoeRoute, Op
from .reference_expert_ops import chosen_of, gated, order_of, used_of
from .reference_state import Floats
from .reverse import Reverse


def moe_route(op: MoeRoute, reverse: Reverse, grad: Floats) -> None:
    """Through the weights of the chosen to the scores of all."""
    scores = reverse.state.values[op.x]
    chosen, all_of = chosen_of(reverse.state.values[op.out]), gated(op, scores)
    of_weights = grad[:, op.used :] * np.float32(op.scale)
    picked = np.take_along_axis(all_of, chosen, axis=1)
    if op.normalise:
        total = picked.sum(axis=1, keepdims=True)
        along = (of_weights * picked).sum(axis=1, keepdims=True) / total
        of_weights = (of_weights - along) / total
    of_gated = np.zeros_like(scores)
    np.put_along_axis(of_gated, chosen, of_weights, axis=1)
    if op.gate == "sigmoid":
        reverse.add(op.x, of_gated * all_of * (1 - all_of))
    else:
        reverse.add(op.x, all_of * (of_gated - (of_gated * all_of).sum(axis=1, keepdims=True)))


def dispatch(op: Dispatch, reverse: Reverse, grad: Floats) -> None:
    """A token gets what all its experts found."""
    route = reverse.state.values[op.route]
    whole = np.zeros_like(reverse.state.values[op.x])
    np.add.at(whole, order_of(route) // used_of(route), grad)
    reverse.add(op.x, whole)


def expert_linear(op: ExpertLinear, reverse: Reverse, grad: Floats) -> None:
    """Through each expert's matrix, transposed."""
    state = reverse.state
    experts = np.sort(chosen_of(state.values[op.route]).reshape(-1))
    n, x, weight = grad.shape[1], state.values[op.x], state.weight(op.weight)
    found = np.empty_like(x)
    for expert in np.unique(experts).tolist():
        mine = experts == expert
        reverse.matrix(op.weight, grad[mine], x[mine], expert * n)
        found[mine] = grad[mine] @ weight[expert * n : (expert + 1) * n]
    reverse.add(op.x, found)


def combine(op: Combine, reverse: Reverse, grad: Floats) -> None:
    """To the rows by their weights, and to the weights by the rows."""
    route = reverse.state.values[op.route]
    used, order = used_of(route), order_of(route)
    tokens, choices = np.divmod(order, used)
    rows = reverse.state.values[op.x]
    reverse.add(op.x, grad[tokens] * route[tokens, used + choices, None])
    of_route = np.zeros_like(route)
    of_route[tokens, used + choices] = (grad[tokens] * rows).sum(axis=1)
    reverse.add(op.route, of_route)


EXPERT_BACKWARD: dict[type[Op], Callable[[Any, Reverse, Any], None]] = {
    MoeRoute: moe_route,
    Dispatch: dispatch,
    ExpertLinear: expert_linear,
    Combine: combine,
}
