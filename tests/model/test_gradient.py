"""The reverse of every program says what a small change of a weight does to the logits."""

import dataclasses

import numpy as np
import pytest

from halfbyte.formats import open_gguf
from halfbyte.model import bind
from halfbyte.model.backend import Weight
from halfbyte.model.gradient import BACKWARD, backward, slope_of
from halfbyte.model.kv_types import KvTypes
from halfbyte.model.program import Attention, Op
from halfbyte.model.reference_kv import PagedKv
from halfbyte.model.reference_ops import OPS, activate
from halfbyte.model.reference_state import State
from halfbyte.model.reverse import Reverse
from halfbyte.quant import FORMATS
from tests.model.batches import step
from tests.model.tiny import make_tiny_gguf
from tests.model.tiny_traits import USUAL

V, PAGE = 300, 8


class Case:
    """A tiny model, a step of two sequences, and `loss`, a random sum over its logits."""

    def __init__(self, path, rng, change=lambda op: op):
        bound = bind(open_gguf(path))
        self.program = dataclasses.replace(bound.program, ops=tuple(map(change, bound.program.ops)))
        self.weights = bound.weights
        ids = rng.integers(0, V, 41)
        rows = [3, 20, 24, 25, 40]
        self.batch = step([(ids[:25], 0, [0, 1, 2, 3]), (ids[25:], 0, [4, 5])], PAGE, rows)
        self.factors = rng.normal(0, 1, (len(rows), V)).astype(np.float32)

    def run(self, weights):
        state = State(self.batch, PagedKv(self.program.kv_layers, 8, PAGE, KvTypes("f32", "f32")), weights, {})
        for op in self.program.ops:
            OPS[type(op)](op, state)
        return state

    def loss(self, name, change):
        values = self.weights[name].decode() + change
        changed = Weight(name, FORMATS["f32"], values.shape, values.view(np.uint8))
        logits = self.run({**self.weights, name: changed}).values[self.program.logits]
        return float((logits.astype(np.float64) * self.factors).sum())

    def gradients(self):
        found = {name: np.zeros(self.weights[name].shape) for name in self.weights}

        def matrix(name, g, x, first):
            found[name][first : first + g.shape[1]] += g.T.astype(np.float64) @ x

        def rows(name, ids, g):
            np.add.at(found[name], ids, g)

        backward(self.program, Reverse(self.run(self.weights), matrix, rows), self.factors)
        return found


def check(case, rng):
    """Central differences along a random direction in each matrix."""
    found = case.gradients()
    matrices = [name for name, weight in case.weights.items() if weight.shape[0] > 1]
    for name in matrices:
        direction = rng.normal(0, 1, case.weights[name].shape).astype(np.float32)
        along = (found[name] * direction).sum()
        small = np.float32(2e-3)
        slope = (case.loss(name, small * direction) - case.loss(name, -small * direction)) / (2 * small)
        size = np.linalg.norm(found[name])
        assert size > 0, name
        assert abs(along - slope) < 0.03 * size, (name, along, slope, size)


@pytest.mark.parametrize("arch", USUAL)
def test_gradients_are_the_slopes(tmp_path, rng, arch):
    check(Case(make_tiny_gguf(tmp_path / "m.gguf", arch, n_layers=2, window=6), rng), rng)


def test_gradients_of_bent_scores_and_of_a_tied_table(tmp_path, rng):
    def bend(op):
        return dataclasses.replace(op, softcap=2.0) if isinstance(op, Attention) else op

    check(Case(make_tiny_gguf(tmp_path / "m.gguf", "llama", n_layers=2, tied=True), rng, bend), rng)


@pytest.mark.parametrize("kind", ["silu", "gelu_tanh", "gelu", "relu"])
def test_slopes_of_activations(kind):
    x = np.array([-3, -1, -0.3, 0.4, 2, 30], np.float32)
    exact = [(activate(kind, x[i : i + 1] + 1e-2) - activate(kind, x[i : i + 1] - 1e-2)) / 2e-2 for i in range(len(x))]
    assert np.allclose(slope_of(kind, x), np.concatenate(exact), atol=2e-3)


def test_every_op_has_its_reverse():
    ours = {op for op in Op.__subclasses__() if op.__module__.startswith("halfbyte.")}  # tests make others
    assert BACKWARD.keys() == OPS.keys() == ours
