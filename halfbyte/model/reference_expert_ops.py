"""What the ops of a mixture of experts mean, in NumPy float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .program import Combine, Dispatch, ExpertLinear, MoeRoute, Op
from .reference_state import Floats, State


def moe_route(op: MoeRoute, state: State) -> None:
    """The stable sort keeps the lower number first among equals."""
    scores = state.values[op.x]
    chosen = np.sort(np.argsort(-scores, axis=1, kind="stable")[:, : op.used], axis=1)
    weights = np.take_along_axis(gated(op, scores), chosen, axis=1)
    if op.normalise:
        weights = weights / weights.sum(axis=1, keepdims=True)
    state.values[op.out] = np.concatenate([chosen.astype(np.float32), weights * np.float32(op.scale)], axis=1)


def gated(op: MoeRoute, scores: Floats) -> Floats:
    """f32[T, E]: what weights are made of."""
    if op.gate == "sigmoid":
        return np.asarray(1 / (1 + np.exp(-scores)), np.float32)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True, initial=-np.inf))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), np.float32)


def dispatch(op: Dispatch, state: State) -> None:
    """Sorted by expert, then by token."""
    order = order_of(state.values[op.route])
    state.values[op.out] = state.values[op.x][order // used_of(state.values[op.route])]


def expert_linear(op: ExpertLinear, state: State) -> None:
    """One matrix product an expert that anyone chose."""
    route = state.values[op.route]
    experts = np.sort(chosen_of(route).reshape(-1))
    x = state.values[op.x]
    n = len(state.weights[op.weight].data) // op.experts
    out = np.empty((len(x), n), np.float32)
    for expert in np.unique(experts):
        mine = experts == expert
        out[mine] = state.product(x[mine], op.weight, slice(expert * n, (expert + 1) * n))
        if op.bias is not None:
            out[mine] += state.weight(op.bias)[expert]
    state.values[op.out] = out


def combine(op: Combine, state: State) -> None:
    """In ascending order of the experts, one after the other."""
    route = state.values[op.route]
    used = used_of(route)
    place = np.empty(len(route) * used, np.intp)
    place[order_of(route)] = np.arange(len(route) * used)
    rows = state.values[op.x][place].reshape(len(route), used, -1)
    out = np.zeros((len(route), rows.shape[2]), np.float32)
    for j in range(used):
        out += route[:, used + j, None] * rows[:, j]
    state.values[op.out] = out


def used_of(route: Floats) -> int:
    """Experts of a token."""
    return int(route.shape[1] // 2)


def chosen_of(route: Floats) -> NDArray[np.intp]:
    """[T, used], ascending."""
    return route[:, : used_of(route)].astype(np.intp)


def order_of(route: Floats) -> NDArray[np.intp]:
    """Which (token, choice), counted token by token, stands in each dispatched row."""
    return np.argsort(chosen_of(route).reshape(-1), kind="stable")


EXPERT_OPS: dict[type[Op], Callable[[Any, State], None]] = {
    MoeRoute: moe_route,
    Dispatch: dispatch,
    ExpertLinear: expert_linear,
    Combine: combine,
}
