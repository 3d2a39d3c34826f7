"""GPTQ checkpoints give the weights that were packed into them."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.errors import FormatError, UnsupportedError
from tests.tools.convert.stored_arrays import FILE, StoredArrays, bit_fields, check, plain

N, M, GROUP = 64, 96, 32


def packed(bits, *, version=1, group=GROUP, order=None, symmetric=False, n=N, m=M, seed=0, scale_type=np.float16):
    """The tensors of a module `x`, and its weight."""
    rng = np.random.default_rng(seed)
    groups = -(-m // group)
    codes = rng.integers(0, 1 << bits, (n, m)).astype(np.uint8)
    # A zero of 0 is less than version 1 can express without a carry, which has a test of its own.
    zeros = rng.integers(1, 1 << bits, (groups, n)).astype(np.uint8)
    if symmetric:
        zeros[:] = 1 << (bits - 1)
    scales = rng.uniform(0.01, 0.1, (groups, n)).astype(scale_type)
    of_column = np.arange(m) // group if order is None else order
    differences = codes.astype(np.int32) - zeros.astype(np.int32).T[:, of_column]
    weight = differences.astype(np.float32) * scales.astype(np.float32).T[:, of_column]
    stored_zeros = zeros - np.uint8(version == 1)
    arrays = {
        "x.qweight": np.ascontiguousarray(bit_fields(codes, bits).T),
        "x.qzeros": bit_fields(stored_zeros, bits),
        "x.scales": scales,
    }
    if order is not None:
        arrays["x.g_idx"] = order.astype(np.int32)
    return arrays, weight


def source_of(arrays, bits=4, **settings):
    return plain(StoredArrays(**arrays), quant_method="gptq", **{"bits": bits, "group_size": GROUP} | settings)


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize("version", [1, 2])
def test_weights_are_those_that_were_packed(bits, version):
    arrays, weight = packed(bits, version=version)
    layout = "gptq" if version == 1 else "gptq_v2"
    check(source_of(arrays, bits, checkpoint_format=layout, sym=False), "x.weight", weight)


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
def test_columns_quantized_in_another_order(bits):
    order = np.random.default_rng(3).permutation(np.arange(M) // GROUP)
    arrays, weight = packed(bits, order=order)
    check(source_of(arrays, bits, sym=False, desc_act=True), "x.weight", weight)


def test_an_order_that_is_none():
    arrays, weight = packed(4, order=np.arange(M) // GROUP)
    check(source_of(arrays), "x.weight", weight)


@pytest.mark.parametrize(("m", "group"), [(96, -1), (96, 96), (96, 64), (32, 128), (40, 16)])
def test_groups_of_any_size(m, group):
    arrays, weight = packed(4, group=group if group > 0 else m, m=m)
    check(source_of(arrays, group_size=group), "x.weight", weight)


def test_rows_that_fill_no_word():
    arrays, weight = packed(4, n=37)
    check(source_of(arrays), "x.weight", weight)


@pytest.mark.parametrize("scale_type", [np.float16, np.float32])
def test_symmetric_weights(scale_type):
    for bits in (2, 3, 4, 8):
        arrays, weight = packed(bits, symmetric=True, scale_type=scale_type)
        check(source_of(arrays, bits, sym=True), "x.weight", weight)


def test_three_bits_have_a_zero_in_the_middle_whatever_a_writer_took_away():
    arrays, weight = packed(3, symmetric=True)
    arrays["x.qzeros"] = np.random.default_rng(0).integers(-(2**31), 2**31, arrays["x.qzeros"].shape).astype(np.int32)
    check(source_of(arrays, 3, sym=True), "x.weight", weight)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_zeros_of_zero_that_borrowed_from_their_neighbours(bits):
    arrays, weight = packed(bits, version=2)
    rng = np.random.default_rng(4)
    zeros = rng.integers(0, 1 << bits, (M // GROUP, N)).astype(np.uint8)
    zeros[:, ::5] = 0
    codes, _ = packed(bits, version=2)
    one_each = np.uint32(0xFFFFFFFF // ((1 << bits) - 1))
    arrays["x.qzeros"] = (bit_fields(zeros, bits).view(np.uint32) - one_each).view(np.int32)
    codes["x.qzeros"] = bit_fields(zeros, bits)
    expected = source_of(codes, bits, checkpoint_format="gptq_v2", sym=False).read("x.weight")
    assert (expected != weight).any()
    check(source_of(arrays, bits, sym=False), "x.weight", expected)


def test_modules_of_different_bits():
    arrays, weight = packed(4)
    others, other = packed(8, group=M, seed=1)
    arrays |= {name.replace("x.", "y."): array for name, array in others.items()}
    source = source_of(arrays, dynamic={"+:y": {"bits": 8, "group_size": -1}})
    check(source, "x.weight", weight)
    check(source, "y.weight", other)


def test_other_tensors_pass_in_their_order():
    arrays, _ = packed(4)
    norm, bias = np.arange(5, dtype=np.float32), np.ones(N, np.float16)
    source = source_of({"a.norm": norm} | arrays | {"x.bias": bias})
    assert list(source.tensors) == ["a.norm", "x.weight", "x.bias"]
    np.testing.assert_array_equal(source.read("a.norm", 1, 4), norm[1:4], strict=True)
    np.testing.assert_array_equal(source.read("x.bias"), bias, strict=True)


def test_a_matrix_stored_the_other_way_round_is_read_once():
    arrays, _ = packed(4)
    stored = StoredArrays(**arrays)
    source = plain(stored, quant_method="gptq", bits=4, group_size=GROUP)
    for row in range(N):
        source.read("x.weight", row, row + 1)
    assert stored.read_entries["x.qweight"] == len(arrays["x.qweight"])


@pytest.mark.parametrize("missing", ["x.qweight", "x.qzeros", "x.scales"])
def test_a_missing_member_is_named_with_a_file(missing):
    arrays, _ = packed(4)
    del arrays[missing]
    with pytest.raises(FormatError, match=rf"{FILE.name}.*{missing}.*missing"):
        source_of(arrays)


def replaced(name, array):
    return packed(4)[0] | {name: array}


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("x.qweight", np.zeros((M // 8, N), np.float32)),
        ("x.qweight", np.zeros((M // 8, N), np.int64)),
        ("x.qweight", np.zeros((M // 8, N + 1), np.int32)),
        ("x.qweight", np.zeros((M // 4, N), np.int32)),
        ("x.qweight", np.zeros((M // 8 * N,), np.int32)),
        ("x.qweight", np.zeros((0, N), np.int32)),
        ("x.qzeros", np.zeros((M // GROUP, N // 4), np.int32)),
        ("x.qzeros", np.zeros((M // GROUP - 1, N // 8), np.int32)),
        ("x.scales", np.zeros((M // GROUP, N), np.int32)),
        ("x.scales", np.zeros((M // GROUP + 1, N), np.float16)),
        ("x.scales", np.zeros((M // GROUP,), np.float16)),
        ("x.g_idx", np.zeros(M + 1, np.int32)),
        ("x.g_idx", np.zeros(M, np.float32)),
    ],
)
def test_a_wrong_shape_or_type_names_tensor_and_file(name, array):
    with pytest.raises(FormatError, match=rf"{FILE.name}.*x\.(qweight|qzeros|scales|g_idx)"):
        source_of(replaced(name, array))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scales_that_are_not_finite(bad):
    arrays, _ = packed(4)
    arrays["x.scales"][1, 2] = bad
    with pytest.raises(FormatError, match=rf"{FILE.name}.*x\.scales.*not finite"):
        source_of(arrays).read("x.weight")


@pytest.mark.parametrize("group", [-1, M // GROUP, 2**31 - 1])
def test_an_order_that_names_groups_that_are_not_there(group):
    order = np.arange(M) // GROUP
    order[5] = group
    with pytest.raises(FormatError, match=rf"{FILE.name}.*x\.g_idx.*groups"):
        source_of(packed(4)[0] | {"x.g_idx": order.astype(np.int32)}).read("x.weight")


def test_a_plain_weight_beside_its_quantized_form():
    with pytest.raises(FormatError, match=r"x\.weight.*which one counts"):
        source_of(packed(4)[0] | {"x.weight": np.zeros((N, M), np.float32)})


@pytest.mark.parametrize(
    "settings",
    [{"bits": 5}, {"bits": "4"}, {"bits": None}, {"group_size": 2.5}, {"group_size": -2}, {"sym": 1}],
)
def test_settings_that_make_no_sense(settings):
    with pytest.raises(FormatError, match=rf"config.json.*quantization_config.{next(iter(settings))}"):
        source_of(packed(4)[0], **settings)


@pytest.mark.parametrize("settings", [{"checkpoint_format": "marlin"}, {"is_marlin_format": True}])
def test_other_packings_are_refused_by_name(settings):
    with pytest.raises(UnsupportedError, match=r"'marlin'.*known: gptq, gptq_v2"):
        source_of(packed(4)[0], **settings)


def test_other_bits_than_the_config_says():
    with pytest.raises(FormatError, match=r"x\.qzeros"):
        source_of(packed(8)[0], 4)
