"""gguf-py is the judge of every byte; formats it only names are judged by a reading one number at a time."""

import struct

import gguf
import numpy as np
import pytest

from halfbyte.errors import ConfigError
from halfbyte.quant import FORMATS, grids
from tests.quant.random_blocks import random_blocks, write_scales

ALONE = {"f64": "<d", "i8": "<b", "i16": "<h", "i32": "<i", "i64": "<q"}
NOT_IN_GGUF_PY = {*ALONE, "q1_0"}
JUDGED = [name for name in FORMATS if name not in NOT_IN_GGUF_PY]


def theirs(name, data):
    with np.errstate(all="ignore"):
        return gguf.dequantize(data, gguf.GGMLQuantizationType(FORMATS[name].ggml_id))


def assert_same_bits(ours, expected):
    """NaN equals NaN: which one is no promise."""
    assert ours.dtype == expected.dtype == np.float32
    assert ours.shape == expected.shape
    where = ~np.isnan(expected)
    assert np.array_equal(np.isnan(ours), ~where)
    assert np.array_equal(ours[where].view(np.uint32), expected[where].view(np.uint32))


@pytest.mark.parametrize("name", JUDGED)
def test_random_bytes_decode_as_gguf_py_does(name, rng):
    data = rng.integers(0, 256, (31, 50 * FORMATS[name].block_bytes), dtype=np.uint8)
    assert_same_bits(FORMATS[name].decode(data), theirs(name, data))


@pytest.mark.parametrize("name", JUDGED)
def test_plausible_weights_decode_as_gguf_py_does(name, rng):
    data = random_blocks(FORMATS[name], 500, rng)
    values = FORMATS[name].decode(data)
    assert np.isfinite(values).all()
    assert_same_bits(values, theirs(name, data))


@pytest.mark.parametrize("name", JUDGED)
@pytest.mark.parametrize("scale", [0.0, -0.0, 2.0**-24, -3 * 2.0**-24, 2.0**-14, 65504.0, np.inf])
def test_odd_scales_decode_as_gguf_py_does(name, scale, rng):
    data = random_blocks(FORMATS[name], 60, rng)
    with np.errstate(over="ignore", invalid="ignore"):
        write_scales(FORMATS[name], data, np.full(60, scale, dtype=np.float32))
    assert_same_bits(FORMATS[name].decode(data), theirs(name, data))


@pytest.mark.parametrize("name", ["mxfp4", "nvfp4"])
def test_every_scale_byte_decodes_as_gguf_py_does(name, rng):
    data = random_blocks(FORMATS[name], 256, rng)
    data[:, 0] = np.arange(256)
    assert_same_bits(FORMATS[name].decode(data), theirs(name, data))


@pytest.mark.parametrize(("name", "kind"), ALONE.items())
def test_plain_numbers_round_to_single(name, kind, rng):
    data = rng.integers(0, 256, 300 * FORMATS[name].block_bytes, dtype=np.uint8)
    with np.errstate(all="ignore"):
        expected = np.array([np.float32(number) for (number,) in struct.iter_unpack(kind, data.tobytes())])
    assert_same_bits(FORMATS[name].decode(data), expected)


def test_q1_0_adds_or_subtracts_its_scale_by_bit_lowest_first(rng):
    data = random_blocks(FORMATS["q1_0"], 20, rng)
    expected = []
    for block in data:
        (scale,) = struct.unpack("<e", block[:2].tobytes())
        expected += [scale if block[2 + j // 8] >> j % 8 & 1 else -scale for j in range(128)]
    assert_same_bits(FORMATS["q1_0"].decode(data).reshape(-1), np.float32(expected))


@pytest.mark.parametrize(
    ("ours", "other"),
    [("IQ1", "IQ1_S"), *((n, n) for n in ("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"))],
)
def test_grids_are_ggmls(ours, other):
    kind = getattr(gguf.quants, other)
    kind.init_grid()
    assert np.array_equal(getattr(grids, ours), kind.grid.reshape(kind.grid_shape))


@pytest.mark.parametrize("name", FORMATS)
def test_leading_axes_are_kept_and_pieces_equal_the_whole(name, rng):
    format = FORMATS[name]
    blocks = random_blocks(format, 2 * 3 * 4, rng)
    whole = format.decode(blocks)
    wide = blocks.reshape(2, 3, 4 * format.block_bytes)
    wide.setflags(write=False)
    assert np.array_equal(format.decode(wide), whole.reshape(2, 3, -1))
    assert np.array_equal(format.decode(wide[::-1, ::2]), whole.reshape(2, 3, -1)[::-1, ::2])
    assert np.array_equal(format.decode(wide[1, 2]), whole.reshape(6, -1)[5])
    assert format.decode(wide[:0]).shape == (0, 3, 4 * format.block_len)
    assert format.decode(wide[:, :, :0]).shape == (2, 3, 0)


def test_more_blocks_than_fit_one_piece(rng):
    data = np.tile(random_blocks(FORMATS["q6_k"], 100, rng), (11, 1))
    values = FORMATS["q6_k"].decode(data)
    assert np.array_equal(values, np.tile(values[:100], (11, 1)))
    assert_same_bits(values, theirs("q6_k", data))


@pytest.mark.parametrize("name", [n for n in FORMATS if FORMATS[n].block_bytes > 1])
def test_part_of_a_block_is_refused(name):
    format = FORMATS[name]
    with pytest.raises(ConfigError, match=f"do not divide into {name} blocks of {format.block_bytes}"):
        format.decode(np.zeros((2, format.block_bytes + 1), dtype=np.uint8))
