"""A quantized checkpoint becomes the file that its weights, unpacked, would become."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.formats import open_gguf
from halfbyte.tools.convert.conversion import Conversion, ConversionChoices
from tests.tools.convert.stored_arrays import bit_fields
from tests.tools.convert.tiny_folder import make_folder, tensors

GROUP = 32


def of_integers(name, weight, bits=4):
    """Codes, zeros, scales by group of columns, and the weight that they make."""
    rng = np.random.default_rng(len(name))
    n, m = weight.shape
    codes = rng.integers(0, 1 << bits, (n, m)).astype(np.uint8)
    zeros = rng.integers(1, 1 << bits, (n, m // GROUP)).astype(np.uint8)
    scales = rng.uniform(0.01, 0.02, (n, m // GROUP)).astype(np.float16)
    difference = (codes.astype(np.int32) - zeros.repeat(GROUP, 1)).astype(np.float32)
    return codes, zeros, scales, difference * scales.astype(np.float32).repeat(GROUP, 1)


def gptq(stem, weight):
    codes, zeros, scales, made = of_integers(stem, weight)
    return {
        f"{stem}.qweight": np.ascontiguousarray(bit_fields(codes, 4).T),
        f"{stem}.qzeros": bit_fields(np.ascontiguousarray(zeros.T - np.uint8(1)), 4),
        f"{stem}.scales": np.ascontiguousarray(scales.T),
        f"{stem}.g_idx": (np.arange(weight.shape[1]) // GROUP).astype(np.int32),
    }, made


def packed(stem, weight):
    codes, zeros, scales, made = of_integers(stem, weight)
    return {
        f"{stem}.weight_packed": bit_fields(codes, 4),
        f"{stem}.weight_scale": scales,
        f"{stem}.weight_zero_point": (zeros.astype(np.int8) - np.int8(8)),
        f"{stem}.weight_shape": np.array(weight.shape),
    }, made


def fp8(stem, weight):
    rng = np.random.default_rng(len(stem))
    mantissas = rng.integers(0, 8, weight.shape)
    codes = (0x38 | mantissas).astype(np.uint8)
    scale = rng.uniform(0.01, 0.02, (-(-weight.shape[0] // 48), -(-weight.shape[1] // 48))).astype(np.float32)
    made = (1 + mantissas / 8).astype(np.float32) * scale.repeat(48, 0)[: len(weight)].repeat(48, 1)[
        :, : weight.shape[1]
    ]
    return {f"{stem}.weight": ("F8_E4M3", codes), f"{stem}.weight_scale_inv": scale}, made


INTEGERS = {"targets": ["Linear"], "weights": {"num_bits": 4, "group_size": GROUP, "symmetric": False}}
METHODS = {
    "gptq": (gptq, {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "sym": False}),
    "compressed-tensors": (
        packed,
        {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": INTEGERS}},
    ),
    "fp8": (fp8, {"quant_method": "fp8", "weight_block_size": [48, 48]}),
}


@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.parametrize("kind", ["f32", "q8_0"])
def test_the_file_is_that_of_the_unpacked_weights(tmp_path, method, kind):
    pack, settings = METHODS[method]
    stored, unpacked = {}, {}
    for name, array in tensors().items():
        if ".layers." in name and array.ndim == 2:
            arrays, unpacked[name] = pack(name.removesuffix(".weight"), array)
            stored |= arrays
        else:
            stored[name] = unpacked[name] = array
    quantized = make_folder(tmp_path / "model", stored, quantization_config=settings)
    ours = Conversion(quantized, ConversionChoices(kind)).write(tmp_path / "ours.gguf", threads=2)
    plain = make_folder(tmp_path / "model", unpacked)
    theirs = Conversion(plain, ConversionChoices(kind)).write(tmp_path / "theirs.gguf")
    assert ours.paths[0].read_bytes() == theirs.paths[0].read_bytes()
    assert open_gguf(ours.paths[0]).tensors["blk.0.ffn_down.weight"].format.name == kind
