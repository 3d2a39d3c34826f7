"""FP8 checkpoints give their floats times their scales, whatever these are for."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.errors import FormatError
from halfbyte.tools.convert.quantized.float8 import FLOAT8
from tests.tools.convert.stored_arrays import FILE, StoredArrays, bf16, check, plain

FINITE = np.array([code for code in range(256) if code & 127 != 127], np.uint8)


def e4m3(codes):
    """By its definition: a sign, 4 bits of exponent with bias 7, 3 of mantissa, no infinities."""
    sign = np.where(codes & 128, -1.0, 1.0)
    exponent, mantissa = (codes >> 3 & 15).astype(int), (codes & 7) / 8
    size = np.where(exponent == 0, mantissa * 2.0**-6, (1 + mantissa) * 2.0 ** (exponent - 7))
    return (sign * size).astype(np.float32)


def codes_of(*shape, seed=0):
    return np.random.default_rng(seed).choice(FINITE, shape)


def scales_of(*shape, seed=1):
    return np.random.default_rng(seed).uniform(0.001, 0.01, shape).astype(np.float32)


def source_of(weight, scale, *, ending="_scale_inv", blocks=None, method="fp8", **others):
    arrays = {"x.weight": weight if isinstance(weight, tuple) else ("F8_E4M3", weight), f"x.weight{ending}": scale}
    return plain(StoredArrays(**arrays, **others), quant_method=method, weight_block_size=blocks)


@pytest.mark.parametrize("dtype", ["F8_E4M3", "F8_E5M2", "F8_E8M0"])
def test_all_codes_mean_what_they_do_in_torch(dtype):
    torch = pytest.importorskip("torch")
    kinds = {"F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2, "F8_E8M0": torch.float8_e8m0fnu}
    theirs = torch.arange(256, dtype=torch.uint8).view(kinds[dtype]).to(torch.float32).numpy()
    nan = np.isnan(theirs)
    np.testing.assert_array_equal(np.isnan(FLOAT8[dtype]), nan)
    np.testing.assert_array_equal(FLOAT8[dtype][~nan].view(np.uint32), theirs[~nan].view(np.uint32))


def test_all_codes_mean_what_their_definition_says():
    np.testing.assert_array_equal(FLOAT8["F8_E4M3"][FINITE].view(np.uint32), e4m3(FINITE).view(np.uint32))


@pytest.mark.parametrize(("n", "m", "blocks"), [(8, 12, [4, 4]), (9, 13, [4, 4]), (3, 5, [4, 8]), (7, 4, [1, 3])])
@pytest.mark.parametrize("ending", ["_scale_inv", "_scale"])
def test_blocks_share_a_scale(n, m, blocks, ending):
    codes, scales = codes_of(n, m), scales_of(-(-n // blocks[0]), -(-m // blocks[1]))
    expected = np.empty((n, m), np.float32)
    for row in range(n):
        for column in range(m):
            expected[row, column] = e4m3(codes[row, column]) * scales[row // blocks[0], column // blocks[1]]
    check(source_of(codes, scales, ending=ending, blocks=blocks), "x.weight", expected)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_one_scale_for_all(shape):
    codes, scale = codes_of(9, 13), np.full(shape, 0.3, np.float32)
    check(source_of(codes, scale, blocks=[4, 4]), "x.weight", e4m3(codes) * np.float32(0.3))


@pytest.mark.parametrize("shape", [(9,), (9, 1)])
def test_a_scale_for_each_row(shape):
    codes, scale = codes_of(9, 13), scales_of(*shape)
    check(source_of(codes, scale, method="fbgemm_fp8", ending="_scale"), "x.weight", e4m3(codes) * scale.reshape(9, 1))


@pytest.mark.parametrize("shape", [(3, 2, 2), (3, 5, 1), (3, 5), (3, 1, 1), (3,), (1,)])
def test_experts_in_one_tensor(shape):
    codes, scale = codes_of(3, 5, 7), scales_of(*shape)
    if shape == (3, 2, 2):
        spread = scale.repeat(4, 1)[:, :5].repeat(4, 2)[:, :, :7]
    else:
        spread = scale.reshape(*shape, *(1 for _ in range(3 - len(shape))))
    check(source_of(codes, scale, blocks=[4, 4]), "x.weight", e4m3(codes) * spread)


def test_scales_of_other_types():
    codes = codes_of(4, 8)
    powers = np.array([[120, 127], [130, 0]], np.uint8)
    scale = 2.0 ** (powers.astype(np.float64) - 127)
    expected = (e4m3(codes) * scale.repeat(2, 0).repeat(4, 1)).astype(np.float32)
    check(source_of(codes, ("F8_E8M0", powers), blocks=[2, 4]), "x.weight", expected)
    check(source_of(codes, powers, blocks=[2, 4]), "x.weight", expected)
    halves = np.array([[0.5, 3], [1.5, 0.25]])
    expected = e4m3(codes) * halves.astype(np.float32).repeat(2, 0).repeat(4, 1)
    check(source_of(codes, bf16(halves), blocks=[2, 4]), "x.weight", expected)
    check(source_of(codes, halves.astype(np.float16), blocks=[2, 4]), "x.weight", expected)


def test_five_bits_of_exponent():
    codes = np.array([[0x00, 0x01, 0x3C, 0x7B], [0x80, 0x81, 0xBC, 0xFB]], np.uint8)
    values = np.array([0, 2.0**-16, 1, 57344], np.float32)
    expected = np.stack([values, -values]) * np.float32(0.5)
    check(source_of(("F8_E5M2", codes), np.full((1,), 0.5, np.float32)), "x.weight", expected)


def test_weights_are_those_of_transformers():
    torch = pytest.importorskip("torch")
    fp8 = pytest.importorskip("transformers.integrations.finegrained_fp8")
    codes, scales = codes_of(256, 384), scales_of(2, 3)
    dequantize = fp8.Fp8Dequantize(None)._dequantize_one
    theirs = dequantize(torch.from_numpy(codes).view(torch.float8_e4m3fn), torch.from_numpy(scales), torch.float32)
    ours = source_of(codes, scales, blocks=[128, 128]).read("x.weight")
    np.testing.assert_array_equal(ours, theirs.numpy())


def test_pieces_larger_than_a_cache():
    codes, scales = codes_of(40, 2**14), scales_of(2, 128)
    source = source_of(codes, scales, blocks=[32, 128])
    expected = e4m3(codes) * scales.repeat(32, 0)[:40].repeat(128, 1)
    np.testing.assert_array_equal(source.read("x.weight"), expected)
    np.testing.assert_array_equal(source.read("x.weight", 9, 36), expected[9:36])


def test_no_more_is_read_than_was_asked_for():
    stored = StoredArrays(**{"x.weight": ("F8_E4M3", codes_of(64, 8)), "x.weight_scale_inv": scales_of(16, 2)})
    source = plain(stored, quant_method="fp8", weight_block_size=[4, 4])
    source.read("x.weight", 6, 9)
    assert stored.read_entries == {"x.weight": 3, "x.weight_scale_inv": 2}


def test_what_concerns_activations_is_left_out_and_the_rest_passes():
    others = {
        "x.input_scale": np.ones((), np.float32),
        "x.activation_scale": np.ones((), np.float32),
        "a.self_attn.k_scale": np.ones((1,), np.float32),
        "a.self_attn.k_proj.output_scale": np.ones((1,), np.float32),
        "x.bias": np.ones(3, np.float32),
        "lm_head.weight": np.ones((3, 4), np.float16),
        "router.scale": np.ones(3, np.float32),
    }
    source = source_of(codes_of(3, 4), np.ones((1,), np.float32), **others)
    assert list(source.tensors) == ["x.weight", "x.bias", "lm_head.weight", "router.scale"]
    assert source.tensors["lm_head.weight"].dtype == "F16"


@pytest.mark.parametrize("code", [0x7F, 0xFF])
def test_a_code_that_is_no_number(code):
    codes = codes_of(9, 13)
    codes[7, 3] = code
    source = source_of(codes, np.ones((1,), np.float32))
    source.read("x.weight", 0, 7)
    with pytest.raises(FormatError, match=rf"{FILE.name}.*'x\.weight' has nan in entry 7, column 3"):
        source.read("x.weight", 2, 9)


def test_an_infinite_code():
    source = source_of(("F8_E5M2", np.full((2, 2), 0x7C, np.uint8)), np.ones((1,), np.float32))
    with pytest.raises(FormatError, match=rf"{FILE.name}.*'x\.weight' has inf"):
        source.read("x.weight")


@pytest.mark.parametrize("scale", [np.float32(np.nan), np.float32(np.inf), np.float64(1e300)])
def test_scales_that_are_not_finite(scale):
    source = source_of(codes_of(9, 13), np.full((1,), scale))
    with pytest.raises(FormatError, match=rf"{FILE.name}.*x\.weight_scale_inv.*not finite"):
        source.read("x.weight")


@pytest.mark.parametrize(
    "scale",
    [
        np.ones((3, 5), np.float32),
        np.ones((13, 1), np.float32),
        np.ones((4, 3, 1), np.float32),
        np.ones((0,), np.float32),
    ],
)
@pytest.mark.parametrize("blocks", [[4, 4], None])
def test_a_wrong_shape_of_scales_names_tensor_and_file(scale, blocks):
    with pytest.raises(FormatError, match=rf"{FILE.name}.*x\.weight_scale_inv.*has shape"):
        source_of(codes_of(9, 13), scale, blocks=blocks)


@pytest.mark.parametrize("weight", [codes_of(9), codes_of(0, 4), codes_of(2, 2, 2, 2)])
def test_a_weight_that_is_no_matrix(weight):
    with pytest.raises(FormatError, match=rf"{FILE.name}.*x\.weight.*no matrix"):
        source_of(weight, np.ones((1,), np.float32))


def test_scales_of_a_type_that_they_cannot_have():
    with pytest.raises(FormatError, match=rf"{FILE.name}.*x\.weight_scale_inv.*type I32"):
        source_of(codes_of(3, 4), np.ones((1,), np.int32))


def test_a_weight_without_scales_and_scales_without_a_weight():
    with pytest.raises(FormatError, match=rf"{FILE.name}.*x\.weight.*there are 0"):
        plain(StoredArrays(**{"x.weight": ("F8_E4M3", codes_of(3, 4))}), quant_method="fp8")
    one = np.ones((1,), np.float32)
    with pytest.raises(FormatError, match=rf"{FILE.name}.*there are 2"):
        source_of(codes_of(3, 4), one, **{"x.weight_scale": one})
    with pytest.raises(FormatError, match=rf"{FILE.name}.*y\.weight_scale_inv.*without a quantized weight"):
        source_of(codes_of(3, 4), one, **{"y.weight_scale_inv": one})
    with pytest.raises(FormatError, match=rf"{FILE.name}.*y\.weight_scale_inv.*without a quantized weight"):
        source_of(codes_of(3, 4), one, **{"y.weight_scale_inv": one, "y.weight": np.ones((3, 4), np.float32)})


@pytest.mark.parametrize("blocks", [[128], [0, 128], ["a", 2], 128, [True, 2], [2.0, 2]])
def test_block_sizes_that_make_no_sense(blocks):
    with pytest.raises(FormatError, match=r"config.json.*weight_block_size"):
        source_of(codes_of(3, 4), np.ones((1,), np.float32), blocks=blocks)
