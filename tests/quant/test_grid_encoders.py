"""Encoders of the formats whose codes are points of a grid: what they choose, and how near it is."""

import importlib

import gguf
import numpy as np
import pytest

from halfbyte.errors import ConfigError
from halfbyte.quant import FORMATS
from halfbyte.quant.encode_rows import encode_rows
from halfbyte.quant.grid_search import trial
from halfbyte.quant.points import Points, Targets
from halfbyte.quant.search import NUMPY
from tests.quant.random_blocks import random_blocks, write_scales

ERRORS = {
    "iq1_s": 0.198,
    "iq1_m": 0.17,
    "iq2_xxs": 0.107,
    "iq2_xs": 0.081,
    "iq2_s": 0.057,
    "iq3_xxs": 0.0315,
    "iq3_s": 0.0168,
}
"""Share of the energy of normal weights that the error is."""


def relative_error(format, x, importance=None, counted=None):
    """Error of `x` written with `importance`, counted with `counted` (all alike if None), relative to the energy."""
    importance, counted = (np.float32(1) if given is None else given for given in (importance, counted))
    weights = np.broadcast_to(importance, x.shape).reshape(-1, format.block_len)
    decoded = format.decode(format.encoder.encode(x.reshape(-1, format.block_len), weights, NUMPY)).reshape(x.shape)
    return float((counted * (decoded - x) ** 2).sum() / (counted * x * x).sum())


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32) * np.float32(0.02)


@pytest.mark.parametrize("name", ERRORS)
def test_error_of_normal_weights(name, rng):
    assert relative_error(FORMATS[name], normal(rng, 4, 768)) < 1.03 * ERRORS[name]


@pytest.mark.parametrize("name", ERRORS)
def test_bytes_decode_to_what_was_chosen(name, rng):
    format, form = FORMATS[name], importlib.import_module(f"halfbyte.quant.{name}")._FORM
    x = normal(rng, 6, 256)
    chosen = form.choose(x, None, NUMPY)
    kinds = np.repeat(chosen.kinds, chosen.codes.shape[1] // form.groups, axis=1)
    q = np.stack([points.values for points in form.kinds])[kinds, chosen.codes].reshape(6, form.groups, -1)
    values = (q * (chosen.half.view("<f2") * form.multipliers[chosen.scales])[:, :, None]).reshape(6, 256)
    if form.magnitudes:
        values *= np.where(np.unpackbits(chosen.signs, axis=1, bitorder="little"), -1, 1)
    assert np.array_equal(format.decode(format.encoder.encode(x, None, NUMPY)).reshape(6, 256), values)
    assert not form.kinds[0].even or not (np.bitwise_count(chosen.signs) % 2).any()


@pytest.mark.parametrize("name", ERRORS)
def test_gguf_py_reads_the_same(name, rng):
    data = encode_rows(FORMATS[name], normal(rng, 2, 512), None, NUMPY)
    theirs = gguf.dequantize(data, gguf.GGMLQuantizationType[name.upper()])
    assert np.array_equal(FORMATS[name].decode(data), theirs)


@pytest.mark.parametrize("name", ERRORS)
def test_weights_that_lie_on_the_grid_are_found_again(name, rng):
    format = FORMATS[name]
    blocks = random_blocks(format, 12, rng)
    write_scales(format, blocks, rng.uniform(0.001, 1, 12).astype(np.float32))
    x = format.decode(blocks)
    decoded = format.decode(encode_rows(format, x, None, NUMPY))
    shares = ((decoded - x) ** 2).sum(axis=1) / (x * x).sum(axis=1)
    assert np.median(shares) < 1e-6


@pytest.mark.parametrize("name", ERRORS)
def test_columns_that_matter_get_the_smaller_error(name, rng):
    format, x = FORMATS[name], normal(rng, 4, 512)
    importance = rng.gamma(0.5, 2, 512).astype(np.float32)
    with_it = relative_error(format, x, importance, importance)
    assert with_it < 0.85 * relative_error(format, x, None, importance)


@pytest.mark.parametrize("name", ERRORS)
def test_importance_is_relative(name, rng):
    x, importance = normal(rng, 1, 256), rng.gamma(1, 1, 256).astype(np.float32)
    few, many = (encode_rows(FORMATS[name], x, importance * np.float32(2.0**k), NUMPY) for k in (-90, 90))
    assert np.array_equal(few, many)


@pytest.mark.parametrize("name", ERRORS)
def test_zeros_stay_zeros(name, rng):
    format, x = FORMATS[name], normal(rng, 2, 512)
    x[1] = 0
    assert (format.decode(encode_rows(format, x, None, NUMPY))[1] == 0).all()


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("run", [32, 256])
def test_columns_without_importance_still_get_their_weights(name, run, rng):
    x = normal(rng, 4, 512)
    importance = np.resize(np.repeat(np.float32([1, 0]), run), 512)
    assert relative_error(FORMATS[name], x, importance, importance) < 1.15 * ERRORS[name]
    assert relative_error(FORMATS[name], x, importance, 1 - importance) < 1.2 * ERRORS[name]


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("size", [1e-6, 1e3])
def test_small_and_large_weights(name, size, rng):
    x = rng.standard_normal((1, 512)).astype(np.float32) * np.float32(size)
    assert relative_error(FORMATS[name], x) < 1.35 * ERRORS[name]


@pytest.mark.parametrize("name", ERRORS)
def test_weights_beyond_half_precision_are_refused(name, rng):
    with pytest.raises(ConfigError, match=f"{name} cannot hold block 1"):
        encode_rows(FORMATS[name], normal(rng, 1, 512) * np.repeat(np.float32([1, 1e12]), 256), None, NUMPY)


def by_hand(x, w, odd, points, inverse):
    """Least distance of one group of 8, every point and every sign tried, in double precision."""
    best = np.inf
    codes = 8 // points.width
    for which in np.ndindex(*[len(points.values)] * codes):
        q = np.concatenate([points.values[k] for k in which]).astype(np.float64)
        distances = w * (x * inverse - q) ** 2
        total = distances.sum()
        if odd:
            total = (total - distances + w * (x * inverse + q) ** 2).min()
        best = min(best, total)
    return best


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("even", [False, True])
def test_nothing_is_nearer_than_what_a_trial_finds(width, even, rng):
    points = Points(rng.choice(np.int16([1, 3, 5]), (24, width)), even)
    x, w = (rng.random((8, 20)).astype(np.float32) for _ in range(2))
    odd = (np.arange(20) % 2).astype(np.float32)[None] if even else None
    inverse = rng.uniform(2, 8, 20).astype(np.float32)
    found = trial(Targets(x, w, odd), inverse, points)
    for g in range(20):
        q = points.values[found.codes[:, g]].reshape(-1).astype(np.float64)
        if even and found.wrong[0, g] >= 0:
            q[found.wrong[0, g]] *= -1
        assert (q < 0).any() == (even and odd[0, g] == 1)
        distance = (w[:, g] * (x[:, g] * inverse[g] - q) ** 2).sum()
        assert distance == pytest.approx(by_hand(x[:, g], w[:, g], even and odd[0, g], points, inverse[g]), rel=1e-4)
        assert found.dot[g] == pytest.approx((w[:, g] * x[:, g] * q).sum(), rel=1e-4, abs=1e-5)
        assert found.square[g] == pytest.approx((w[:, g] * q * q).sum(), rel=1e-5)
