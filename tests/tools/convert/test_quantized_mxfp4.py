"""Experts in MXFP4 become blocks of a GGUF file that mean the same, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from gguf.quants import MXFP4 as GGUF_MXFP4

from halfbyte.errors import FormatError
from halfbyte.quant import FORMATS
from tests.tools.convert.stored_arrays import FILE, StoredArrays, check, plain

FLOATS = np.array([0.0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
NAME = "model.layers.0.mlp.experts.gate_up_proj"


def stored(shape=(3, 5, 4), seed=0, low=0, high=255):
    rng = np.random.default_rng(seed)
    blocks = rng.integers(0, 256, (*shape, 16)).astype(np.uint8)
    scales = rng.integers(low, high, shape).astype(np.uint8)
    return {f"{NAME}_blocks": blocks, f"{NAME}_scales": scales}


def source_of(arrays):
    return plain(StoredArrays(**arrays), quant_method="mxfp4", modules_to_not_convert=["lm_head"])


def codes_of(blocks):
    """u8[..., 32]: neighbours share a byte, the first in its low nibble."""
    return np.stack([blocks & 15, blocks >> 4], axis=-1).reshape(*blocks.shape[:-1], 32)


def meaning(arrays):
    """f32[..., M]."""
    scales, codes = arrays[f"{NAME}_scales"], codes_of(arrays[f"{NAME}_blocks"])
    with np.errstate(over="ignore", invalid="ignore"):
        values = FLOATS[codes].astype(np.float64) * 2.0 ** (scales.astype(np.float64)[..., None] - 127)
        return values.astype(np.float32).reshape(*scales.shape[:-1], -1)


def decoded(data):
    with np.errstate(over="ignore", invalid="ignore"):
        return GGUF_MXFP4.dequantize_rows(data)


def test_blocks_mean_what_was_stored():
    arrays = stored()
    source = source_of(arrays)
    assert source.tensors[NAME].shape == (3, 5, 128)
    data = source.read(NAME)
    assert data.shape == (3, 5, 4 * 17)
    expected = meaning(arrays)
    np.testing.assert_array_equal(decoded(data), expected)
    np.testing.assert_array_equal(FORMATS["mxfp4"].decode(data), expected)
    check(source, NAME, data, "MXFP4")


def test_every_code_in_every_place_with_every_scale():
    codes = (np.arange(16)[:, None] + np.arange(32)) % 16
    pairs = (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)
    blocks = np.broadcast_to(pairs[:, None], (16, 255, 16))
    scales = np.broadcast_to(np.arange(255, dtype=np.uint8), (16, 255))
    arrays = {f"{NAME}_blocks": blocks[:, None], f"{NAME}_scales": scales[:, None]}
    data = source_of(arrays).read(NAME)
    expected = meaning(arrays)
    np.testing.assert_array_equal(decoded(data), expected)
    np.testing.assert_array_equal(FORMATS["mxfp4"].decode(data), expected)
    kept = data.reshape(-1, 17)
    np.testing.assert_array_equal(
        np.concatenate([kept[:, 1:] & 15, kept[:, 1:] >> 4], axis=1), codes_of(blocks).reshape(-1, 32)
    )
    np.testing.assert_array_equal(kept[:, 0], scales.reshape(-1))


def test_weights_are_those_of_transformers():
    torch = pytest.importorskip("torch")
    mxfp4 = pytest.importorskip("transformers.integrations.mxfp4")
    arrays = stored(low=100, high=150)
    theirs = mxfp4.convert_moe_packed_tensors(
        *(torch.from_numpy(arrays[f"{NAME}_{part}"]) for part in ("blocks", "scales")), dtype=torch.float32
    )
    ours = decoded(source_of(arrays).read(NAME))
    np.testing.assert_array_equal(ours, theirs.transpose(1, 2).numpy())


def test_biases_pass():
    bias = np.ones((3, 5), np.float32)
    source = source_of(stored() | {f"{NAME}_bias": bias})
    assert list(source.tensors) == [NAME, f"{NAME}_bias"]
    np.testing.assert_array_equal(source.read(f"{NAME}_bias", 1), bias[1:])


@pytest.mark.parametrize("missing", ["blocks", "scales"])
def test_a_missing_member_is_named_with_a_file(missing):
    arrays = stored()
    del arrays[f"{NAME}_{missing}"]
    with pytest.raises(FormatError, match=rf"{FILE.name}.*{NAME}_{missing}.*missing"):
        source_of(arrays)


@pytest.mark.parametrize(
    ("part", "array"),
    [
        ("blocks", np.zeros((3, 5, 4, 8), np.uint8)),
        ("blocks", np.zeros((3, 5, 64), np.uint8)),
        ("blocks", np.zeros((3, 5, 4, 16), np.int8)),
        ("scales", np.zeros((3, 5, 3), np.uint8)),
        ("scales", np.zeros((3, 5, 4), np.float32)),
        ("scales", np.zeros((), np.uint8)),
    ],
)
def test_a_wrong_shape_or_type_names_tensor_and_file(part, array):
    with pytest.raises(FormatError, match=rf"{FILE.name}.*{NAME}_(blocks|scales)"):
        source_of(stored() | {f"{NAME}_{part}": array})


def test_a_scale_that_is_no_number():
    arrays = stored()
    arrays[f"{NAME}_scales"][2, 1, 0] = 255
    source = source_of(arrays)
    source.read(NAME, 0, 2)
    with pytest.raises(FormatError, match=rf"{FILE.name}.*{NAME}_scales.*no numbers"):
        source.read(NAME)
