"""Each op on numbers small enough to compute by hand, or against a naive loop."""

import math

import numpy as np
import pytest

from halfbyte.model.backend import Weight
from halfbyte.model.kv_types import KvTypes
from halfbyte.model.program import (
    Add,
    Attention,
    Embed,
    GatedAct,
    KvLayer,
    KvWrite,
    Linear,
    RmsNorm,
    Rope,
    RopeTable,
    Scale,
    Softcap,
    TakeRows,
)
from halfbyte.model.reference_kv import PagedKv
from halfbyte.model.reference_ops import OPS, activate
from halfbyte.model.reference_state import State
from halfbyte.quant import FORMATS
from tests.model.batches import step


def matrix(name, values):
    values = np.asarray(values, np.float32)
    return Weight(name, FORMATS["f32"], values.shape, values.view(np.uint8))


def run(op, values, weights=None, batch=None, kv=None):
    """The op's result; inputs are f32 lists of rows."""
    weights = {name: matrix(name, rows) for name, rows in (weights or {}).items()}
    values = {name: np.asarray(rows, np.float32) for name, rows in values.items()}
    state = State(batch or step([([0], 0, [0])], 4), kv, weights, {}, values)
    OPS[type(op)](op, state)
    return state.values.get(getattr(op, "out", None))


def test_embed_takes_scaled_rows():
    batch = step([([2, 0], 0, [0])], 4)
    out = run(Embed("t", "o", 3.0), {}, {"t": [[1, 2], [3, 4], [5, 6]]}, batch)
    assert out.tolist() == [[15, 18], [3, 6]]


def test_rms_norm():
    op = RmsNorm("x", "w", "o", eps=0.0 + 1e-12)
    assert np.allclose(run(op, {"x": [[3, 4], [-3, 4]]}, {"w": [[1, 10]]}) * math.sqrt(12.5), [[3, 40], [-3, 40]])
    strong = RmsNorm("x", "w", "o", eps=12.5)
    assert np.allclose(run(strong, {"x": [[3, 4]]}, {"w": [[5, 5]]}), [[3, 4]])


def test_rms_norm_of_groups_shares_the_weight():
    out = run(RmsNorm("x", "w", "o", 1e-12, groups=2), {"x": [[3, 4, 30, 40]]}, {"w": [[1, 10]]})
    assert np.allclose(out * math.sqrt(12.5), [[3, 40, 3, 40]])


def test_linear_with_and_without_bias():
    weights = {"w": [[1, 2], [3, 4], [5, 6]], "b": [[10, 20, 30]]}
    assert run(Linear("x", "w", "o"), {"x": [[1, -1]]}, weights).tolist() == [[-1, -1, -1]]
    assert run(Linear("x", "w", "o", "b"), {"x": [[1, -1]]}, weights).tolist() == [[9, 19, 29]]


@pytest.mark.parametrize(
    ("kind", "turned"),
    [("norm", [[-2, 1, -3, -4, 5, -20, 10, -30, -40, 50]]), ("neox", [[-3, -2, 1, -4, 5, -30, -20, 10, -40, 50]])],
)
def test_rope_turns_pairs_by_position_times_frequency(kind, turned):
    """At position 2 the first pair turns by pi / 2, the second by pi; the fifth channel of each head passes."""
    table = RopeTable(kind, (math.pi / 4, math.pi / 2))
    batch = step([([7], 2, [0])], 4)
    out = run(Rope("x", "o", 2, table), {"x": [[1, 2, 3, 4, 5, 10, 20, 30, 40, 50]]}, batch=batch)
    assert np.allclose(out, turned, atol=1e-5)


def test_rope_at_position_zero_only_scales():
    out = run(Rope("x", "o", 1, RopeTable("neox", (1.0,), 1.5)), {"x": [[1, 2, 3]]})
    assert np.allclose(out, [[1.5, 3, 3]])


def test_rope_is_exact_at_far_positions():
    batch = step([([0], 2**20 + 1, [0] * 2**19)], 4)
    out = run(Rope("x", "o", 1, RopeTable("norm", (0.1,))), {"x": [[1, 0]]}, batch=batch)
    angle = (2**20 + 1) * 0.1
    assert np.allclose(out, [[math.cos(angle), math.sin(angle)]], atol=1e-6)


def naive_attention(op, q, k, v, position):
    """One token, one head at a time, in double precision; k, v lists over positions 0, 1, ..."""
    out = []
    for head in range(op.heads):
        kv_head = head // (op.heads // op.kv_heads)
        query = q[head * op.key_size : (head + 1) * op.key_size]
        first = 0 if op.window is None else max(0, position - op.window + 1)
        scores = []
        for p in range(first, position + 1):
            score = op.scale * sum(a * b for a, b in zip(query, k[p][kv_head * op.key_size :], strict=False))
            scores.append(score if op.softcap is None else op.softcap * math.tanh(score / op.softcap))
        weights = [math.exp(score - max(scores)) for score in scores]
        for c in range(op.value_size):
            mixed = sum(w * v[first + i][kv_head * op.value_size + c] for i, w in enumerate(weights))
            out.append(mixed / sum(weights))
    return out


@pytest.mark.parametrize("window", [None, 1, 3])
@pytest.mark.parametrize("softcap", [None, 2.0])
def test_attention_equals_a_naive_loop(rng, window, softcap):
    """Two sequences in one step, pages out of order, three old tokens in the first one."""
    op = Attention("q", "o", 0, 4, 2, key_size=3, value_size=5, scale=0.7, window=window, softcap=softcap)
    kv = PagedKv((KvLayer(2, 3, 5, window),), n_pages=5, page_len=2, types=KvTypes("f32", "f32"))
    k = {s: rng.normal(size=(n, 6)).astype(np.float32) for s, n in ((0, 7), (1, 3))}
    v = {s: rng.normal(size=(n, 10)).astype(np.float32) for s, n in ((0, 7), (1, 3))}
    pages = ([4, 0, 2, 1], [3, 4])
    old = step([([0] * 3, 0, pages[0])], 2)
    run(KvWrite("k", "v", 0), {"k": k[0][:3], "v": v[0][:3]}, batch=old, kv=kv)
    pages[1][1], pages[0][0] = 1, 4
    pages = ([4, 0, 2, 2], [3, 1])
    batch = step([([0] * 3, 3, pages[0]), ([0] * 3, 0, pages[1])], 2)
    new = {"k": np.concatenate([k[0][3:6], k[1]]), "v": np.concatenate([v[0][3:6], v[1]])}
    run(KvWrite("k", "v", 0), new, batch=batch, kv=kv)
    q = rng.normal(size=(6, 12)).astype(np.float32)
    out = run(op, {"q": q}, batch=batch, kv=kv)
    wanted = [naive_attention(op, q[t], k[0], v[0], 3 + t) for t in range(3)]
    wanted += [naive_attention(op, q[3 + t], k[1], v[1], t) for t in range(3)]
    assert np.allclose(out, wanted, rtol=1e-5, atol=1e-5)


def test_keys_and_values_are_rounded_to_half_precision():
    kv = PagedKv((KvLayer(1, 1, 1),), n_pages=1, page_len=4, types=KvTypes())
    run(KvWrite("k", "v", 0), {"k": [[1 + 2**-11 + 2**-20]], "v": [[1e6]]}, kv=kv)
    k, v = kv.read(0, np.array([0]), 0, 1)
    assert k.item() == 1 + 2**-10
    assert np.isinf(v.item())


@pytest.mark.parametrize(
    ("kind", "at_one", "at_minus_two"),
    [
        ("relu", 1, 0),
        ("silu", 1 / (1 + math.exp(-1)), -2 / (1 + math.exp(2))),
        ("gelu", 0.5 * (1 + math.erf(1 / math.sqrt(2))), -(1 + math.erf(-math.sqrt(2)))),
        ("gelu_tanh", 0.841192, -0.045402),
    ],
)
def test_activations(kind, at_one, at_minus_two):
    assert np.allclose(activate(kind, np.float32([1, -2, 0])), [at_one, at_minus_two, 0], atol=1e-6)
    far = activate(kind, np.float32([-200, 200]))
    assert np.allclose(far, [0, 200])
    assert far.dtype == np.float32


def test_gated_act_multiplies_the_activated_gate():
    assert run(GatedAct("g", "u", "o", "relu"), {"g": [[2, -2]], "u": [[3, 5]]}).tolist() == [[6, 0]]


def test_add_scale_and_softcap():
    assert run(Add("a", "b", "o"), {"a": [[1, 2]], "b": [[3, -3]]}).tolist() == [[4, -1]]
    assert run(Scale("x", "o", -0.5), {"x": [[4, -8]]}).tolist() == [[-2, 4]]
    out = run(Softcap("x", "o", 30.0), {"x": [[0.3, 30, 1e6]]})
    assert np.allclose(out, [[0.29999, 30 * math.tanh(1), 30]], rtol=1e-5)


def test_take_rows_keeps_the_order_that_was_asked_for():
    batch = step([([0] * 3, 0, [0])], 4, rows=[2, 0])
    assert run(TakeRows("x", "o"), {"x": [[1], [2], [3]]}, batch=batch).tolist() == [[3], [1]]
