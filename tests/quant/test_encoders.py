import gguf
import numpy as np
import pytest

from halfbyte.errors import ConfigError
from halfbyte.quant import FORMATS
from halfbyte.quant.encode_rows import encode_rows
from halfbyte.quant.search import NUMPY
from tests.quant.random_blocks import random_blocks

SEARCHED = [name for name in FORMATS if FORMATS[name].encoder is not None and FORMATS[name].encoder.fit is not None]
PLAIN = [name for name in SEARCHED if FORMATS[name].encode_blocks is not None]
UNKNOWN_TO_GGUF_PY = {"q1_0"}
# Root mean square error of normal weights against their own: what the best scale leaves, and a little room.
BUDGET = {
    "q8_0": 0.0055,
    "q6_k": 0.0168,
    "q5_0": 0.042,
    "q5_1": 0.035,
    "q5_k": 0.035,
    "q4_0": 0.084,
    "q4_1": 0.071,
    "q4_k": 0.071,
    "iq4_nl": 0.076,
    "iq4_xs": 0.077,
    "nvfp4": 0.09,
    "mxfp4": 0.115,
    "q3_k": 0.147,
    "q2_k": 0.263,
    "tq1_0": 0.44,
    "tq2_0": 0.44,
    "q1_0": 0.61,
}


def normal(rng, format, rows=24, blocks=2):
    return rng.standard_normal((rows, blocks * format.block_len), dtype=np.float32)


def alike(format, values):
    """Bytes of least square error, whatever the weights' sizes."""
    blocks = values.reshape(-1, format.block_len)
    return format.encoder.encode(blocks, None, NUMPY).reshape(len(values), -1)


def error(values, data, format, importance=1.0):
    """Weighted square error against the weighted square of the values."""
    difference = values.astype(np.float64) - format.decode(data)
    return (importance * difference**2).sum() / (importance * values.astype(np.float64) ** 2).sum()


@pytest.fixture(params=SEARCHED)
def format(request):
    return FORMATS[request.param]


def test_decoded_bytes_are_the_grids_values_bit_for_bit(format, rng):
    values = normal(rng, format).reshape(-1, format.block_len)
    values[::3] *= np.exp2(rng.integers(-18, 8, (len(values[::3]), 1))).astype(np.float32)
    weights = rng.uniform(0, 1, values.shape).astype(np.float32)
    fit = format.encoder.fit(values, weights, NUMPY)
    codes = rng.integers(0, len(fit.grid.levels), values.shape, dtype=np.uint8)
    assert (np.diff(fit.grid.levels) > 0).all()
    assert np.array_equal(format.decode(format.encoder.pack(fit, codes)), fit.grid.values(codes))


def test_gguf_py_reads_the_same_values(format, rng):
    data = encode_rows(format, normal(rng, format), None, NUMPY)
    kind = gguf.GGMLQuantizationType(format.ggml_id)
    if format.name in UNKNOWN_TO_GGUF_PY:
        with pytest.raises(NotImplementedError):
            gguf.dequantize(data, kind)
        return
    assert np.array_equal(gguf.dequantize(data, kind), format.decode(data))


def test_normal_weights_stay_within_the_budget(format, rng):
    values = normal(rng, format, rows=64)
    root = error(values, alike(format, values), format) ** 0.5
    assert BUDGET[format.name] / 1.2 < root < BUDGET[format.name]


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("spread", [0, 1.5])
def test_searched_is_nearer_than_plain_rounding(name, spread, rng):
    format = FORMATS[name]
    values = normal(rng, format, rows=64, blocks=8) * np.exp(spread * rng.standard_normal((64, 1))).astype(np.float32)
    for searched in (alike(format, values), encode_rows(format, values, None, NUMPY)):
        assert error(values, searched, format) < error(values, format.encode(values), format)


def test_important_columns_are_nearer(format, rng):
    values = normal(rng, format, rows=64)
    importance = rng.gamma(0.3, 1, values.shape[1]).astype(np.float32)
    told = encode_rows(format, values, importance, NUMPY)
    untold = encode_rows(format, values, None, NUMPY)
    assert error(values, told, format, importance) < error(values, untold, format, importance)


@pytest.mark.parametrize("size", [2.0**-148, 2.0**-120, 2.0**126])
def test_only_the_ratios_of_importance_count(format, size, rng):
    values = normal(rng, format, rows=3)
    importance = rng.choice(np.float32([0.5, 1, 2]), values.shape[1])
    sized = encode_rows(format, values, importance * np.float32(size), NUMPY)
    assert np.array_equal(sized, encode_rows(format, values, importance, NUMPY))


def test_importance_of_nothing_tells_nothing(format, rng):
    values = normal(rng, format, rows=3)
    told = encode_rows(format, values, np.zeros(values.shape[1], np.float32), NUMPY)
    assert np.array_equal(told, encode_rows(format, values, None, NUMPY))


def test_large_weights_are_nearer_than_by_square_error_alone(format, rng):
    values = normal(rng, format, rows=64)
    by_size = encode_rows(format, values, None, NUMPY)
    assert error(values, by_size, format, values**2) < error(values, alike(format, values), format, values**2)


def test_zeros_stay_zeros(format):
    values = np.ones((3, 2 * format.block_len), dtype=np.float32)
    values[:, format.block_len :] = 0
    back = format.decode(encode_rows(format, values, None, NUMPY))
    assert back[values == 1].all()
    assert not back[values == 0].any()


@pytest.mark.parametrize("size", [1e-38, 1e-12, 1e-6, 1e2])
def test_no_size_of_weights_makes_nonsense(format, size, rng):
    values = normal(rng, format) * np.float32(size)
    back = format.decode(encode_rows(format, values, None, NUMPY))
    assert np.abs(back).max() <= 1.5 * np.abs(values).max()
    assert np.square(back - values, dtype=np.float64).sum() <= np.square(values, dtype=np.float64).sum()


@pytest.mark.parametrize("huge", [1e12, 3e38, -3e38])
def test_what_the_format_cannot_hold_is_refused(format, huge, rng):
    values = normal(rng, format, rows=3)
    values[1, -3] = huge
    if format.name == "mxfp4":
        assert np.isclose(format.decode(encode_rows(format, values, None, NUMPY))[1, -3], huge, rtol=0.4)
        return
    with pytest.raises(ConfigError, match=f"{format.name} cannot hold .*bf16"):
        encode_rows(format, values, None, NUMPY)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_no_format_holds_is_refused_with_its_place(format, bad):
    values = np.ones((3, 2 * format.block_len), dtype=np.float32)
    values[2, 40] = bad
    with pytest.raises(ConfigError, match=f"row 2 has {float(bad)!r} in column 40"):
        encode_rows(format, values, None, NUMPY)


def test_weights_on_the_grid_are_found_again(format, rng):
    """Not bit for bit: a scale may come out half a step of half precision off."""
    values = format.decode(encode_rows(format, normal(rng, format), None, NUMPY))
    again = encode_rows(format, values, None, NUMPY)
    assert error(values, again, format) ** 0.5 < 2e-3


def test_rows_do_not_influence_each_other(format, rng):
    values = normal(rng, format, rows=9)
    importance = rng.uniform(0, 1, values.shape[1]).astype(np.float32)
    whole = encode_rows(format, values, importance, NUMPY)
    assert np.array_equal(encode_rows(format, values[4:7], importance, NUMPY), whole[4:7])


def test_many_rows_are_encoded_in_pieces_with_the_same_bytes(rng):
    values = normal(rng, FORMATS["q4_0"], rows=2500, blocks=1)
    whole = encode_rows(FORMATS["q4_0"], values, None, NUMPY)
    assert np.array_equal(whole[2200:], encode_rows(FORMATS["q4_0"], values[2200:], None, NUMPY))


def test_the_place_of_what_cannot_be_held_counts_all_rows(rng):
    values = np.ones((4096, 32), dtype=np.float32)
    values[3000, 5] = 1e9
    with pytest.raises(ConfigError, match="q4_0 cannot hold block 3000"):
        encode_rows(FORMATS["q4_0"], values, None, NUMPY)


@pytest.mark.parametrize("name", [n for n in SEARCHED if n not in PLAIN])
def test_encode_searches_where_gguf_py_has_no_encoder(name, rng):
    format = FORMATS[name]
    values = normal(rng, format, rows=4)
    wide = format.encode(values.reshape(2, 2, -1))
    assert np.array_equal(wide.reshape(4, -1), encode_rows(format, values, None, NUMPY))


def test_random_blocks_of_4_bits_and_more_are_found_again(rng):
    for name in ("q4_0", "q5_0", "q8_0", "q4_1", "q5_1", "q4_k", "q5_k", "q6_k", "iq4_nl"):
        format = FORMATS[name]
        values = format.decode(random_blocks(format, 100, rng))
        assert error(values, encode_rows(format, values, None, NUMPY), format) ** 0.5 < 0.01, name
