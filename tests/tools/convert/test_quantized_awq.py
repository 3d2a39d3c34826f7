"""AWQ checkpoints give the weights that were packed into them."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.errors import FormatError, UnsupportedError
from tests.tools.convert.stored_arrays import FILE, StoredArrays, bf16, check, plain

N, M, GROUP = 40, 96, 32
PLACES = (0, 2, 4, 6, 1, 3, 5, 7)


def words_of(codes):
    """[k, n] to i32[k, n / 8]."""
    k, n = codes.shape
    words = np.zeros((k, n // 8), np.uint32)
    for word in range(n // 8):
        for place, row in enumerate(PLACES):
            words[:, word] |= codes[:, word * 8 + row].astype(np.uint32) << np.uint32(4 * place)
    return words.view(np.int32)


def packed(n=N, m=M, group=GROUP):
    rng = np.random.default_rng(n + m)
    groups = m // group
    codes, zeros = (rng.integers(0, 16, size) for size in ((n, m), (groups, n)))
    scales = rng.uniform(0.01, 0.1, (groups, n)).astype(np.float16)
    of_column = np.arange(m) // group
    weight = (codes - zeros.T[:, of_column]).astype(np.float32) * scales.astype(np.float32).T[:, of_column]
    return {"x.qweight": words_of(codes.T), "x.qzeros": words_of(zeros), "x.scales": scales}, weight


def source_of(arrays, **settings):
    given = {"quant_method": "awq", "bits": 4, "group_size": GROUP, "version": "gemm", "zero_point": True} | settings
    return plain(StoredArrays(**arrays), **given)


@pytest.mark.parametrize(
    ("n", "m", "group"), [(N, M, GROUP), (8, 32, 32), (16, 96, -1), (24, 35, 5), (200, 64, 64), (8, 1, 1)]
)
def test_weights_are_those_that_were_packed(n, m, group):
    arrays, weight = packed(n, m, group if group > 0 else m)
    check(source_of(arrays, group_size=group), "x.weight", weight)


def test_pieces_larger_than_a_cache():
    arrays, weight = packed(24, 2**14, 128)
    check(source_of(arrays, group_size=128), "x.weight", weight)


def test_settings_under_their_older_names():
    arrays, weight = packed()
    stored = StoredArrays(**arrays)
    check(plain(stored, quant_method="awq", w_bit=4, q_group_size=GROUP, version="GEMM"), "x.weight", weight)


def test_scales_in_bf16():
    arrays, _ = packed()
    arrays["x.scales"] = bf16(np.full((M // GROUP, N), 0.5))
    weight = source_of(arrays).read("x.weight")
    assert set(np.unique(weight * 2)) <= set(range(-15, 16))
    check(source_of(arrays), "x.weight", weight)


@pytest.mark.parametrize(
    "settings",
    [{"version": "gemv"}, {"version": "gemv_fast"}, {"version": "exllama"}, {"bits": 8}, {"backend": "llm-awq"}],
)
def test_other_packings_are_refused_by_name(settings):
    name = settings.get("version") or settings.get("backend") or "8 bits"
    with pytest.raises(UnsupportedError, match=rf"config.json.*{name}.*known: 4 bits packed as 'gemm'"):
        source_of(packed()[0], **settings)


@pytest.mark.parametrize("missing", ["x.qweight", "x.qzeros", "x.scales"])
def test_a_missing_member_is_named_with_a_file(missing):
    arrays, _ = packed()
    del arrays[missing]
    with pytest.raises(FormatError, match=rf"{FILE.name}.*{missing}.*missing"):
        source_of(arrays)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("x.qweight", np.zeros((M, N // 8), np.int64)),
        ("x.qweight", np.zeros((M + 1, N // 8), np.int32)),
        ("x.qweight", np.zeros((M,), np.int32)),
        ("x.qzeros", np.zeros((M // GROUP, N), np.int32)),
        ("x.scales", np.zeros((M // GROUP, N // 8), np.float16)),
        ("x.scales", np.zeros((M // GROUP, N), np.int8)),
    ],
)
def test_a_wrong_shape_or_type_names_tensor_and_file(name, array):
    with pytest.raises(FormatError, match=rf"{FILE.name}.*x\.(qweight|qzeros|scales)"):
        source_of(packed()[0] | {name: array})


def test_scales_that_are_not_finite():
    arrays, _ = packed()
    arrays["x.scales"][0, 0] = np.inf
    with pytest.raises(FormatError, match=rf"{FILE.name}.*x\.scales.*not finite"):
        source_of(arrays).read("x.weight", 3, 4)
