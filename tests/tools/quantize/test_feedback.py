"""Errors of a row make up for each other, in any format that has an encoder."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from halfbyte.errors import ConfigError
from halfbyte.quant.encoder import Encoder
from halfbyte.quant.formats import FORMATS
from halfbyte.quant.search import NUMPY
from halfbyte.quant.walk import NUMPY_WALK
from halfbyte.tools.quantize.feedback import Feedback
from halfbyte.tools.quantize.hessian import Hessian, factor

BY_CODE = ("q4_0", "q4_1", "q5_0", "q5_1", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs")
M = 512


def some_rows(n=8, seed=0):
    return np.random.default_rng(seed).standard_normal((n, M)).astype(np.float32)


def correlated(tokens=1500, seed=1):
    """X^T X of inputs that share a few directions and differ in size, as those of a model do."""
    random = np.random.default_rng(seed)
    shared = random.standard_normal((tokens, 24)) @ random.standard_normal((24, M))
    x = (shared + random.standard_normal((tokens, M))) * np.exp(random.standard_normal(M) / 2)
    return (x.T @ x).astype(np.float32)


def encoded(name, rows, moment, sweeps=1):
    return Feedback(NUMPY, NUMPY_WALK, sweeps).encode(FORMATS[name], rows, Hessian.of(moment))


def cost(name, data, rows, moment):
    error = (FORMATS[name].decode(data) - rows).astype(np.float64)
    return float(np.einsum("nm,mk,nk->", error, moment.astype(np.float64), error))


def plain(name, rows, importance=None):
    """Nearest codes, errors counted by importance alone."""
    format = FORMATS[name]
    counted = np.broadcast_to(np.float32(1) if importance is None else importance, rows.shape)
    blocks = (np.ascontiguousarray(part, np.float32).reshape(-1, format.block_len) for part in (rows, counted))
    return format.encoder.encode(*blocks, NUMPY).reshape(len(rows), -1)


@pytest.mark.parametrize("name", BY_CODE)
def test_correlated_inputs_gain_much_from_feedback(name):
    rows, moment = some_rows(), correlated()
    before = cost(name, plain(name, rows, np.diag(moment)), rows, moment)
    assert cost(name, encoded(name, rows, moment, sweeps=0), rows, moment) < 0.6 * before


def test_blocks_coded_as_a_whole_make_up_for_each_other():
    format, rows, moment = FORMATS["q4_0"], some_rows(), correlated()
    whole = replace(format, encoder=Encoder(whole=format.encoder.encode))
    costs = [cost("q4_0", plain("q4_0", rows, np.diag(moment)), rows, moment)]
    for sweeps in (0, 1, 2):
        data = Feedback(NUMPY, NUMPY_WALK, sweeps).encode(whole, rows, Hessian.of(moment))
        costs.append(cost("q4_0", data, rows, moment))
    assert costs[1] < 0.8 * costs[0]
    assert costs[1] > costs[2] > costs[3]


@pytest.mark.parametrize("name", ["q4_0", "q3_k", "iq4_nl"])
def test_a_sweep_costs_no_row_anything_and_gains_on_the_whole(name):
    rows, moment = some_rows(16), correlated()
    matrix = Hessian.of(moment).matrix
    before, after = (
        [cost(name, data[i : i + 1], rows[i : i + 1], matrix) for i in range(len(rows))]
        for data in (encoded(name, rows, moment, sweeps=0), encoded(name, rows, moment, sweeps=1))
    )
    assert all(b <= a * (1 + 1e-5) for a, b in zip(before, after, strict=True))
    assert sum(after) < 0.97 * sum(before)


@pytest.mark.parametrize("name", BY_CODE)
def test_inputs_that_have_nothing_to_do_with_each_other_give_plain_encoding(name):
    rows = some_rows()
    assert_array_equal(encoded(name, rows, 7 * np.eye(M, dtype=np.float32)), plain(name, rows))


def test_without_any_input_all_columns_are_alike():
    rows = some_rows()
    assert_array_equal(encoded("q4_0", rows, np.zeros((M, M), np.float32)), plain("q4_0", rows))


@pytest.mark.parametrize("tokens", [1, 5, 100])
def test_fewer_tokens_than_columns_are_enough(tokens):
    rows, moment = some_rows(), correlated(tokens)
    before = cost("q4_0", plain("q4_0", rows, np.diag(moment)), rows, moment)
    assert cost("q4_0", encoded("q4_0", rows, moment), rows, moment) < 0.5 * before


def test_columns_that_never_had_input_spoil_nothing():
    rows, moment = some_rows(), correlated()
    dead = np.arange(0, M, 3)
    moment[dead] = moment[:, dead] = 0
    data = encoded("q4_0", rows, moment)
    before = cost("q4_0", plain("q4_0", rows, np.diag(moment)), rows, moment)
    assert cost("q4_0", data, rows, moment) < 0.8 * before
    assert np.abs(FORMATS["q4_0"].decode(data) - rows).max() < 4


@pytest.mark.parametrize("name", ["q4_0", "q4_k"])
def test_rows_do_not_influence_each_other(name):
    rows, moment = some_rows(5), correlated()
    others = rows[::-1].copy()
    others[2] = rows[2]
    others[:2] *= 3
    assert_array_equal(encoded(name, others, moment)[2], encoded(name, rows, moment)[2])


def test_a_row_alone_comes_out_as_among_others():
    rows, moment = some_rows(5), correlated()
    together = encoded("q4_k", rows, moment)
    apart = np.concatenate([encoded("q4_k", rows[i : i + 1], moment) for i in range(5)])
    # The last bits of a matrix product depend on its shape, and where they tip a unit of a block its codes follow.
    assert np.mean(together == apart) > 0.9
    assert np.isclose(cost("q4_k", apart, rows, moment), cost("q4_k", together, rows, moment), rtol=0.05)


def test_weights_the_format_can_hold_stay_as_they_are():
    held = FORMATS["q4_0"].decode(plain("q4_0", some_rows()))
    data = encoded("q4_0", held, correlated())
    assert_array_equal(FORMATS["q4_0"].decode(data), held)


def test_the_factor_is_that_of_the_matrix():
    matrix = Hessian.of(correlated()).matrix
    upper = factor(matrix).astype(np.float64)
    assert_array_equal(upper, np.triu(upper))
    assert_allclose(upper @ upper.T, matrix, atol=1e-4)


def test_forward_and_cost_make_the_matrix_again():
    hessian = Hessian.of(correlated())
    unit = hessian.forward.astype(np.float64) + np.eye(M)
    assert_allclose((unit * hessian.cost) @ unit.T, hessian.matrix, atol=1e-4)


def test_inputs_of_any_scale_give_the_same_bytes():
    rows, moment = some_rows(), correlated()
    assert_array_equal(encoded("q4_0", rows, moment), encoded("q4_0", rows, moment * np.float32(2.0**40)))


def test_inputs_that_are_no_numbers_are_refused():
    moment = correlated()
    moment[3, 4] = np.nan
    with pytest.raises(ConfigError, match="NaN or infinity"):
        Hessian.of(moment)
