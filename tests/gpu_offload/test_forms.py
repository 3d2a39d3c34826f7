"""Forms of activations against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.gpu_offload.arrays import download, run, upload
from tests.gpu_offload.planes import RECORD, UNIT, of_digits

RNG = np.random.default_rng(2)


def padded(width: int) -> int:
    return -(-width // UNIT) * UNIT


def forms(device, x: np.ndarray, count: int, threads: int = 64):
    """planes, records, halves and their scales of rows, by the kernel."""
    tokens, width = x.shape
    quads, groups = (tokens + 3) // 4, padded(width) // 32
    rows = np.full((tokens, padded(width)), np.nan, np.float32)
    rows[:, :width] = x
    planes, records = device.allocate(quads * groups * 256), device.allocate(quads * groups // 8 * 4 * RECORD.itemsize)
    halves, scales = device.allocate(tokens * width * 2), device.allocate(tokens * 4)
    counted = upload(device, np.array([count], np.int32))
    arguments = (upload(device, rows), padded(width), width, counted, planes, records, halves, scales)
    run(device, "make_forms", (tokens,), threads, *arguments, shared=4 * width)
    return (
        download(device, planes, np.int8, (quads, groups, 4, 2, 4, 2, 4)),
        download(device, records, RECORD, (quads, groups // 8, 4)),
        download(device, halves, np.float16, (tokens, width)),
        download(device, scales, np.float32, (tokens,)),
    )


def numbers(planes: np.ndarray) -> np.ndarray:
    """Whole numbers [tokens, columns]: from [quad, group, token, plane, t, half, byte]."""
    wide = planes.astype(np.int32)
    whole = 256 * wide[:, :, :, 0] + wide[:, :, :, 1]  # [quad, group, token, t, half, byte]
    quads, groups = whole.shape[:2]
    return whole.transpose(0, 2, 1, 4, 3, 5).reshape(4 * quads, 32 * groups)


@pytest.mark.parametrize("width", [32, 50, 256, 300, 704])
@pytest.mark.parametrize("threads", [32, 128])
def test_planes_and_records_hold_the_row(device, width, threads):
    tokens = 5
    x = (RNG.standard_normal((tokens, width)) * np.exp(RNG.standard_normal((tokens, 1)) * 4)).astype(np.float32)
    planes, records, _, _ = forms(device, x, tokens, threads)
    whole = numbers(planes)[:tokens]
    assert (whole[:, width:] == 0).all()
    by_unit = np.zeros((tokens, padded(width)), np.float32)
    by_unit[:, :width] = x
    by_unit = by_unit.reshape(tokens, -1, UNIT)
    record = records.transpose(0, 2, 1).reshape(-1, by_unit.shape[1])[:tokens]
    scale = record["scale"]
    np.testing.assert_allclose(scale, np.abs(by_unit).max(2) / (127 * 256), rtol=1e-6)
    numbered = whole.reshape(by_unit.shape)
    assert (np.abs(numbered) <= 127 * 256).all()
    assert (np.abs(numbered * scale[..., None] - by_unit) <= scale[..., None] * 0.505).all()
    np.testing.assert_array_equal(record["sums"], numbered.reshape(*scale.shape, 8, 32).sum(3))
    np.testing.assert_array_equal(of_digits(record["halves"]), numbered.reshape(*scale.shape, 16, 16).sum(3))
    np.testing.assert_array_equal(of_digits(record["groups"]), record["sums"])


@pytest.mark.parametrize("width", [50, 192])
def test_halves_have_a_power_of_two_above_the_row_where_they_need_one(device, width):
    wanted = np.float32([[3e-6], [0.03], [1], [3e4], [1e5], [1e9]])
    x = RNG.standard_normal((len(wanted), width)).astype(np.float32)
    x *= wanted / np.abs(x).max(1, keepdims=True)
    _, _, halves, scales = forms(device, x, len(wanted))
    assert (np.frexp(scales)[0] == 0.5).all()
    assert (scales[2:4] == 1).all()
    peak, others = np.abs(x).max(1), [0, 1, 4, 5]
    assert (scales > peak)[others].all()
    assert (scales <= 2 * peak)[others].all()
    np.testing.assert_array_equal(halves, (x / scales[:, None]).astype(np.float16))


def test_rows_that_are_not_counted_are_left_alone(device):
    x = np.ones((5, 64), np.float32)
    planes, _, halves, scales = forms(device, x, 2)
    assert (planes[0, :, 2:] == -1).all()
    assert (planes[1] == -1).all()
    assert np.isnan(halves[2:]).all()
    assert np.isnan(scales[2:]).all()


def test_a_row_of_zeros_is_zero(device):
    planes, records, halves, _ = forms(device, np.zeros((1, 64), np.float32), 1)
    assert (numbers(planes)[0] == 0).all()
    assert (records["scale"][0, :, 0] == 0).all()
    assert (halves == 0).all()
