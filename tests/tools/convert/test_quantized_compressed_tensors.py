"""compressed-tensors checkpoints give the weights that were compressed, in each of their packings."""

from __future__ import annotations

import numpy as np
import pytest
from gguf.quants import MXFP4 as GGUF_MXFP4

from halfbyte.errors import FormatError, UnsupportedError
from halfbyte.tools.convert.quantized.float8 import FLOAT8
from tests.tools.convert.stored_arrays import FILE, StoredArrays, bit_fields, check, plain

FLOATS = np.array([0.0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def groups(bits, group_size=None, *, targets=("Linear",), **weights):
    return {"targets": list(targets), "weights": {"num_bits": bits, "group_size": group_size} | weights}


def source_of(arrays, *config_groups, layout="pack-quantized", **settings):
    named = {f"group_{i}": group for i, group in enumerate(config_groups)}
    given = {"quant_method": "compressed-tensors", "format": layout, "config_groups": named, "ignore": ["lm_head"]}
    return plain(StoredArrays(**arrays), **given | settings)


def integers(bits, n=24, m=80, group=32, *, zeros=None, order=None, scale_shape=None, seed=0):
    """The tensors of a module `x`, and its weight: `zeros` are "packed", "bytes" or none."""
    rng = np.random.default_rng(seed)
    middle, count = 1 << (bits - 1), -(-m // group)
    codes = rng.integers(-middle, middle, (n, m))
    of_column = np.arange(m) // group if order is None else order
    scales = rng.uniform(0.01, 0.1, (n, count)).astype(np.float32)
    zero = rng.integers(-middle, middle, (n, count)) if zeros else np.zeros((n, count), int)
    weight = (codes - zero[:, of_column]).astype(np.float32) * scales[:, of_column]
    arrays = {
        "x.weight_packed": bit_fields((codes + middle).astype(np.uint8), bits),
        "x.weight_scale": scales if scale_shape is None else scales.reshape(scale_shape),
        "x.weight_shape": np.array([n, m]),
    }
    if zeros == "packed":
        packed = bit_fields((zero + middle).astype(np.uint8).T, bits)
        arrays["x.weight_zero_point"] = np.ascontiguousarray(packed.T)
    elif zeros == "bytes":
        arrays["x.weight_zero_point"] = zero.astype(np.int8)
    if order is not None:
        arrays["x.weight_g_idx"] = order.astype(np.int32)
    return arrays, weight, codes


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", [None, "packed", "bytes"])
@pytest.mark.parametrize(("n", "m", "group"), [(24, 80, 32), (13, 37, 16), (5, 9, 9), (1, 1, 1)])
def test_packed_weights_are_those_that_were_packed(bits, zeros, n, m, group):
    arrays, weight, _ = integers(bits, n, m, group, zeros=zeros)
    check(source_of(arrays, groups(bits, group, symmetric=zeros is None)), "x.weight", weight)


@pytest.mark.parametrize("zeros", [None, "packed"])
def test_a_scale_for_each_row(zeros):
    arrays, weight, _ = integers(4, 13, 37, 37, zeros=zeros)
    check(source_of(arrays, groups(4, strategy="channel")), "x.weight", weight)


@pytest.mark.parametrize("zeros", [None, "packed"])
def test_columns_quantized_in_another_order(zeros):
    order = np.random.default_rng(5).permutation(np.arange(80) // 32)
    arrays, weight, _ = integers(4, order=order, zeros=zeros)
    check(source_of(arrays, groups(4, 32, actorder="group")), "x.weight", weight)


@pytest.mark.parametrize("zeros", [None, "bytes"])
@pytest.mark.parametrize("group", [16, 37])
def test_integers_of_a_byte_each(zeros, group):
    arrays, weight, codes = integers(8, 13, 37, group, zeros=zeros)
    del arrays["x.weight_packed"], arrays["x.weight_shape"]
    arrays["x.weight"] = codes.astype(np.int8)
    check(source_of(arrays, groups(8, group), layout="int-quantized"), "x.weight", weight)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_one_scale_for_all_integers(shape):
    codes = np.random.default_rng(0).integers(-128, 128, (5, 7)).astype(np.int8)
    arrays = {"x.weight": codes, "x.weight_scale": np.full(shape, 0.1, np.float32)}
    check(source_of(arrays, groups(8), layout="int-quantized"), "x.weight", codes * np.float32(0.1))


@pytest.mark.parametrize(
    ("shape", "weights"),
    [
        ((9, 1), {"strategy": "channel"}),
        ((1,), {"strategy": "tensor"}),
        ((3, 4), {"block_structure": [4, 4]}),
        ((9, 4), {"group_size": 4}),
    ],
)
def test_floats_of_a_byte_each(shape, weights):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 127, (9, 13)).astype(np.uint8)
    scale = rng.uniform(0.1, 1, shape).astype(np.float32)
    arrays = {"x.weight": ("F8_E4M3", codes), "x.weight_scale": scale, "x.input_scale": np.ones((1,), np.float32)}
    whole = scale.repeat(4, 0)[:9] if shape == (3, 4) else scale
    whole = whole.repeat(4, 1)[:, :13] if shape[-1] == 4 else whole
    source = source_of(arrays, groups(8, type="float", **weights), layout="float-quantized")
    check(source, "x.weight", FLOAT8["F8_E4M3"][codes] * whole)
    assert list(source.tensors) == ["x.weight"]


def test_floats_of_a_byte_with_powers_of_two():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 127, (5, 64)).astype(np.uint8)
    powers = rng.integers(120, 130, (5, 2)).astype(np.uint8)
    arrays = {"x.weight": ("F8_E4M3", codes), "x.weight_scale": powers}
    source = source_of(arrays, groups(8, 32, type="float"), layout="mxfp8-quantized")
    scales = np.ldexp(np.float32(1), powers.astype(int) - 127)
    check(source, "x.weight", FLOAT8["F8_E4M3"][codes] * scales.repeat(32, 1))


def nvfp4(n=5, m=48):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 16, (n, m)).astype(np.uint8)
    scale = rng.integers(1, 127, (n, m // 16)).astype(np.uint8)
    outer = np.array([300.0], np.float32)
    arrays = {
        "x.weight_packed": codes[:, ::2] | codes[:, 1::2] << np.uint8(4),
        "x.weight_scale": ("F8_E4M3", scale),
        "x.weight_global_scale": outer,
    }
    return arrays, FLOATS[codes] * (FLOAT8["F8_E4M3"][scale] / outer).repeat(16, 1)


def test_floats_of_four_bits_with_two_scales():
    arrays, weight = nvfp4()
    source = source_of(arrays, groups(4, 16, type="float"), layout="nvfp4-pack-quantized")
    check(source, "x.weight", weight)


def test_floats_of_four_bits_with_powers_of_two_stay_as_they_are():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 16, (5, 96)).astype(np.uint8)
    powers = rng.integers(100, 150, (5, 3)).astype(np.uint8)
    arrays = {"x.weight_packed": codes[:, ::2] | codes[:, 1::2] << np.uint8(4), "x.weight_scale": powers}
    source = source_of(arrays, groups(4, 32, type="float"), layout="mxfp4-pack-quantized")
    assert source.tensors["x.weight"].shape == (5, 96)
    data = source.read("x.weight")
    expected = FLOATS[codes] * np.ldexp(np.float32(1), powers.astype(int) - 127).repeat(32, 1)
    np.testing.assert_array_equal(GGUF_MXFP4.dequantize_rows(data), expected)
    check(source, "x.weight", data, "MXFP4")


def test_modules_named_by_patterns_have_their_own_scheme():
    arrays, weight, _ = integers(4)
    others, other, _ = integers(8, group=80)
    arrays |= {name.replace("x.", "a.down_proj."): array for name, array in others.items()}
    source = source_of(arrays, groups(4, 32), groups(8, targets=["re:.*down_proj$"]))
    check(source, "x.weight", weight)
    check(source, "a.down_proj.weight", other)


def test_ignored_modules_are_plain():
    arrays, _, _ = integers(4)
    head = np.ones((3, 4), np.float16)
    source = source_of(arrays | {"lm_head.weight": head}, groups(4, 32))
    assert list(source.tensors) == ["x.weight", "lm_head.weight"]
    np.testing.assert_array_equal(source.read("lm_head.weight"), head, strict=True)


@pytest.mark.parametrize("missing", ["x.weight_packed", "x.weight_scale", "x.weight_shape"])
def test_a_missing_member_is_named_with_a_file(missing):
    arrays, _, _ = integers(4)
    del arrays[missing]
    with pytest.raises(FormatError, match=rf"{FILE.name}.*(missing|{missing})"):
        source_of(arrays, groups(4, 32))


def test_floats_without_scales():
    arrays = {"y.weight": ("F8_E4M3", np.zeros((2, 2), np.uint8))}
    with pytest.raises(FormatError, match=rf"{FILE.name}.*y\.weight.*no scales"):
        source_of(arrays, groups(8), layout="float-quantized")


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("x.weight_packed", np.zeros((24, 11), np.int32)),
        ("x.weight_packed", np.zeros((24, 10), np.int64)),
        ("x.weight_packed", np.zeros((240,), np.int32)),
        ("x.weight_scale", np.zeros((24, 2), np.float32)),
        ("x.weight_scale", np.zeros((24, 3), np.int32)),
        ("x.weight_shape", np.array([24, 81])),
        ("x.weight_shape", np.array([-24, 80])),
        ("x.weight_shape", np.array([24, 2**62])),
        ("x.weight_shape", np.array([24, 80, 1])),
        ("x.weight_shape", np.array([24.0, 80.0])),
        ("x.weight_zero_point", np.zeros((24, 3), np.int32)),
        ("x.weight_zero_point", np.zeros((24, 2), np.int8)),
        ("x.weight_zero_point", np.zeros((24, 3), np.float32)),
        ("x.weight_g_idx", np.zeros(79, np.int32)),
    ],
)
def test_a_wrong_shape_or_type_names_tensor_and_file(name, array):
    arrays, _, _ = integers(4)
    with pytest.raises(FormatError, match=rf"{FILE.name}.*x\.weight_"):
        source_of(arrays | {name: array}, groups(4, 32))


def test_values_that_make_no_sense_are_found_when_they_are_read():
    arrays, _, _ = integers(4, order=np.arange(80) // 32)
    arrays["x.weight_g_idx"] = np.full(80, 3, np.int32)
    with pytest.raises(FormatError, match=rf"{FILE.name}.*x\.weight_g_idx"):
        source_of(arrays, groups(4, 32)).read("x.weight")
    arrays, _, _ = integers(4)
    arrays["x.weight_scale"][3, 0] = np.nan
    with pytest.raises(FormatError, match=rf"{FILE.name}.*x\.weight_scale"):
        source_of(arrays, groups(4, 32)).read("x.weight")
    arrays, _ = nvfp4()
    arrays["x.weight_global_scale"] = np.zeros(1, np.float32)
    with pytest.raises(FormatError, match=rf"{FILE.name}.*x\.weight_global_scale.*zero"):
        source_of(arrays, groups(4, 16)).read("x.weight")


@pytest.mark.parametrize(
    "change", [{"x.weight_scale": np.ones((5, 3), np.float32)}, {"x.weight_global_scale": np.ones(2, np.float32)}]
)
def test_wrong_scales_of_four_bits(change):
    with pytest.raises(FormatError, match=rf"{FILE.name}.*x\.weight_(scale|global_scale)"):
        source_of(nvfp4()[0] | change, groups(4, 16))


def test_bits_and_compressions_that_we_do_not_know_are_refused_by_name():
    arrays, _, _ = integers(4)
    with pytest.raises(UnsupportedError, match=r"3 bits.*known: 2, 4, 8"):
        source_of(arrays, groups(3, 32))
    with pytest.raises(UnsupportedError, match=r"'marlin-24'.*known: .*pack-quantized"):
        source_of(arrays, groups(4, 32), layout="marlin-24")
    with pytest.raises(UnsupportedError, match=r"'sparse-24-bitmask'"):
        source_of(arrays, groups(4, 32), sparsity_config={"format": "sparse-24-bitmask"})
    with pytest.raises(UnsupportedError, match=r"'mxfp6-pack-quantized'"):
        source_of(arrays, groups(4, 32) | {"format": "mxfp6-pack-quantized"}, layout="mixed-precision")


@pytest.mark.parametrize(
    "group",
    [
        groups("four"),
        groups(4, group_size="all"),
        groups(4, targets=["re:("]),
        groups(4, targets=[4]),
        groups(4, block_structure=[1]),
        {"targets": ["Linear"], "weights": 4},
        7,
    ],
)
def test_settings_that_make_no_sense(group):
    with pytest.raises(FormatError, match=r"config.json.*config_groups"):
        source_of(integers(4)[0], group)


def test_a_module_that_no_group_names():
    with pytest.raises(FormatError, match=r"config.json.*config_groups does not say how 'x'"):
        source_of(integers(4)[0], groups(4, 32, targets=["y"]))
    with pytest.raises(FormatError, match=r"config.json.*config_groups does not say how 'x'"):
        source_of(integers(4)[0])
