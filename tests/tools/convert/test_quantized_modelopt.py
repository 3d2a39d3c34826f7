"""Checkpoints of modelopt: 8-bit floats, and 4-bit floats with two scales that multiply."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.errors import FormatError, UnsupportedError
from halfbyte.tools.convert.quantized.float8 import FLOAT8
from tests.tools.convert.stored_arrays import FILE, StoredArrays, check, plain

FLOATS = np.array([0.0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def source_of(arrays, **settings):
    return plain(StoredArrays(**arrays), quant_method="modelopt", **settings)


def nvfp4(n=5, m=48):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 16, (n, m)).astype(np.uint8)
    scale = rng.integers(1, 127, (n, m // 16)).astype(np.uint8)
    arrays = {
        "x.weight": codes[:, ::2] | codes[:, 1::2] << np.uint8(4),
        "x.weight_scale": ("F8_E4M3", scale),
        "x.weight_scale_2": np.float32(0.001).reshape(()),
        "x.input_scale": np.ones((), np.float32),
    }
    return arrays, FLOATS[codes] * (FLOAT8["F8_E4M3"][scale] * np.float32(0.001)).repeat(16, 1)


def test_floats_of_four_bits():
    arrays, weight = nvfp4()
    source = source_of(arrays, quant_algo="NVFP4")
    assert list(source.tensors) == ["x.weight"]
    check(source, "x.weight", weight)


def test_floats_of_eight_bits():
    codes = np.random.default_rng(0).integers(0, 127, (5, 7)).astype(np.uint8)
    arrays = {"x.weight": ("F8_E4M3", codes), "x.weight_scale": np.full((), 0.3, np.float32)}
    check(source_of(arrays, quant_algo="FP8"), "x.weight", FLOAT8["F8_E4M3"][codes] * np.float32(0.3))


@pytest.mark.parametrize("settings", [{"quant_algo": "W4A8_AWQ"}, {"quantization": {"quant_algo": "W4A8_AWQ"}}])
def test_other_algorithms_are_refused_by_name(settings):
    with pytest.raises(UnsupportedError, match=r"config.json.*'W4A8_AWQ'.*known: FP8, NVFP4"):
        source_of(nvfp4()[0], **settings)


@pytest.mark.parametrize("missing", ["x.weight", "x.weight_scale", "x.weight_scale_2"])
def test_a_missing_member_is_named_with_a_file(missing):
    arrays, _ = nvfp4()
    del arrays[missing]
    with pytest.raises(FormatError, match=rf"{FILE.name}.*{missing}' that belongs to it is missing"):
        source_of(arrays)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("x.weight", np.zeros((5, 23), np.uint8)),
        ("x.weight", np.zeros((5, 24), np.int8)),
        ("x.weight_scale", np.zeros((5, 3), np.float32)),
        ("x.weight_scale", ("F8_E4M3", np.zeros((5, 2), np.uint8))),
        ("x.weight_scale_2", np.zeros((2,), np.float32)),
        ("x.weight_scale_2", np.zeros((), np.float16)),
    ],
)
def test_a_wrong_shape_or_type_names_tensor_and_file(name, array):
    with pytest.raises(FormatError, match=rf"{FILE.name}.*x\.weight"):
        source_of(nvfp4()[0] | {name: array})


def test_floats_without_scales():
    with pytest.raises(FormatError, match=rf"{FILE.name}.*y\.weight.*no scales"):
        source_of({"y.weight": ("F8_E4M3", np.zeros((2, 2), np.uint8))})
