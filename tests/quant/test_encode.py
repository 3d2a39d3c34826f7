import gguf
import numpy as np
import pytest

from halfbyte.errors import ConfigError
from halfbyte.quant import FORMATS

WRITABLE = [name for name in FORMATS if FORMATS[name].encode_blocks is not None]
IN_BLOCKS = [name for name in WRITABLE if FORMATS[name].block_len > 1]
# Largest error against the largest weight of the block: half a step, but a whole one at the end of q4_0 and q5_0
# that has a code less; the scale itself is rounded too.
ROUND_TRIP = {
    "f32": 0,
    "f16": 2**-11,
    "bf16": 2**-8,
    "q8_0": 1 / 254 + 2**-11,
    "q5_1": 1 / 31 + 2**-10,
    "q5_0": 1 / 16 + 2**-11,
    "q4_1": 1 / 15 + 2**-10,
    "q4_0": 1 / 8 + 2**-11,
}


def theirs(name, values):
    return gguf.quantize(values, gguf.GGMLQuantizationType(FORMATS[name].ggml_id)).view(np.uint8)


def inputs(rng):
    """Rows of 64, by what is hard about them."""
    normal = rng.standard_normal((200, 64), dtype=np.float32)
    halves = rng.integers(-16, 17, (200, 64)).astype(np.float32) / 2
    halves[:, ::32] = -8
    return {
        "normal": normal,
        "near an ulp apart": np.float32(1) + normal * np.float32(2**-22),
        "of all sizes": normal * np.exp2(rng.integers(-40, 12, (200, 1))).astype(np.float32),
        "huge": normal * np.float32(9000),
        "tiny": normal * np.float32(1e-30),
        "subnormal scale": normal * np.float32(2**-20),
        "all negative": -np.abs(normal) - np.float32(1),
        "all positive": np.abs(normal) + np.float32(1),
        "one outlier": np.where(np.arange(64) % 32 == 5, np.float32(100), normal),
        "half steps": halves,
        "two equal peaks of opposite sign": np.where(np.arange(64) % 2, np.float32(3), np.float32(-3)) * (halves > 0),
        "zeros": np.zeros((3, 64), dtype=np.float32),
        "negative zeros": np.full((3, 64), -0.0, dtype=np.float32),
        "constant": np.repeat(np.float32([[1], [-1], [0.1], [-7.5], [65504]]), 64, axis=1),
        "one weight": np.eye(64, dtype=np.float32) * np.float32(-0.3),
    }


@pytest.mark.parametrize("name", WRITABLE)
@pytest.mark.parametrize("kind", inputs(np.random.default_rng(0)))
def test_bytes_are_gguf_pys(name, kind, rng):
    values = inputs(rng)[kind].astype(np.float32)
    assert np.array_equal(FORMATS[name].encode(values), theirs(name, values))


def test_every_writable_format_has_an_error_budget():
    assert set(ROUND_TRIP) == set(WRITABLE)


@pytest.mark.parametrize("name", WRITABLE)
def test_round_trip_stays_within_its_budget(name, rng):
    values = rng.standard_normal((3000, FORMATS[name].block_len), dtype=np.float32)
    back = FORMATS[name].decode(FORMATS[name].encode(values))
    error = np.abs(back - values).max(axis=1) / np.abs(values).max(axis=1)
    assert error.max() <= ROUND_TRIP[name]
    assert ROUND_TRIP[name] == 0 or error.max() > ROUND_TRIP[name] / 3


@pytest.mark.parametrize("name", IN_BLOCKS)
def test_decoded_weights_are_encoded_without_further_loss(name, rng):
    values = FORMATS[name].decode(FORMATS[name].encode(rng.standard_normal((50, 32), dtype=np.float32)))
    again = FORMATS[name].decode(FORMATS[name].encode(values))
    assert np.abs(again - values).max() <= np.abs(values).max() * 2**-10


@pytest.mark.parametrize("name", IN_BLOCKS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38, -1e8])
def test_what_a_scale_cannot_hold_is_refused_with_its_block(name, bad):
    values = np.ones((3, 64), dtype=np.float32)
    values[1, 40] = bad
    with pytest.raises(ConfigError, match=f"{name} cannot hold block 3.*bf16"):
        FORMATS[name].encode(values)


@pytest.mark.parametrize("name", ["f32", "f16", "bf16"])
def test_nan_and_infinity_pass_through_plain_numbers(name):
    bits = np.uint32([0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC12345, 0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF, 0x7F7FFFFF])
    values = bits.view(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = theirs(name, values)
        ours = FORMATS[name].encode(values)
    assert np.array_equal(ours, expected)
    assert np.isnan(FORMATS[name].decode(ours)[2:7]).all()


def test_bf16_rounds_every_kind_of_tie_to_even():
    upper = np.arange(2**16, dtype=np.uint32)[:, None] << 16
    values = (upper | np.uint32([0, 0x7FFF, 0x8000, 0x8001, 0xFFFF])).view(np.float32)
    assert np.array_equal(FORMATS["bf16"].encode(values), theirs("bf16", values))


@pytest.mark.parametrize("name", WRITABLE)
def test_leading_axes_strides_and_doubles_are_taken(name, rng):
    format = FORMATS[name]
    values = rng.standard_normal((3, 4, 64), dtype=np.float32)
    whole = format.encode(values)
    assert whole.dtype == np.uint8
    assert whole.shape == (3, 4, format.row_bytes(64))
    assert np.array_equal(format.encode(values[::-1, ::2]), whole[::-1, ::2])
    assert np.array_equal(format.encode(values[2, 1]), whole[2, 1])
    assert np.array_equal(format.encode(values.astype(np.float64)), whole)
    assert format.encode(values[:0]).shape == (0, 4, format.row_bytes(64))


@pytest.mark.parametrize("name", IN_BLOCKS)
def test_rows_that_do_not_divide_are_refused(name):
    with pytest.raises(ConfigError, match=f"a row of 33 does not divide into {name} blocks of 32"):
        FORMATS[name].encode(np.zeros((2, 33), dtype=np.float32))


@pytest.mark.parametrize("name", [n for n in FORMATS if n not in WRITABLE and FORMATS[n].encoder is None])
def test_formats_without_an_encoder_say_so(name):
    with pytest.raises(ConfigError, match=f"{name} can be read but not written"):
        FORMATS[name].encode(np.zeros(256, dtype=np.float32))
