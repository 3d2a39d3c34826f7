import numpy as np
import pytest

from halfbyte.gpu_offload.dequantize import dequantizing
from halfbyte.gpu_offload.families import FAMILIES
from halfbyte.gpu_offload.packing import pack_all
from tests.gpu_offload.arrays import download, run
from tests.gpu_offload.weights import odd_columns, random_weight


@pytest.fixture(scope="module", autouse=True)
def _all_at_once(device):
    """One compilation of them all."""
    device.load([f"dequantize<{family.name}>" for family in FAMILIES.values()], None)


def halves_of(device, matrix, first, count, expert=0):
    kernel, grid, threads = dequantizing(matrix.family, matrix.columns, first, count)
    out = device.allocate(2 * count * matrix.columns)
    run(device, kernel, grid, threads, matrix.address, expert * matrix.n_bytes, out, matrix.columns, first, count)
    return download(device, out, np.float16, (count, matrix.columns))


@pytest.mark.parametrize("name", FAMILIES)
def test_halves_are_the_files_weights_rounded_once(device, name):
    weight = random_weight(name, 50, odd_columns(name))
    matrix = pack_all({"w": weight}, device, None)["w"]
    assert np.array_equal(halves_of(device, matrix, 0, 50), weight.decode().astype(np.float16))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_threads_may_run_in_any_order(emulated, monkeypatch, order):
    weight = random_weight("q6_k", 20, 512)
    matrix = pack_all({"w": weight}, emulated, None)["w"]
    monkeypatch.setattr(emulated, "order", order)
    assert np.array_equal(halves_of(emulated, matrix, 0, 20), weight.decode().astype(np.float16))


@pytest.mark.parametrize(("first", "count"), [(0, 16), (16, 20), (5, 3), (5, 40), (49, 1)])
@pytest.mark.parametrize("name", ["q4_k", "q4_0", "f32"])
def test_any_range_of_rows(device, name, first, count):
    weight = random_weight(name, 50, odd_columns(name))
    matrix = pack_all({"w": weight}, device, None)["w"]
    wanted = weight.decode()[first : first + count].astype(np.float16)
    assert np.array_equal(halves_of(device, matrix, first, count), wanted)


@pytest.mark.parametrize("name", ["q6_k", "mxfp4", "bf16"])
def test_rows_of_an_expert(device, name):
    weight = random_weight(name, 3 * 20, odd_columns(name))
    matrix = pack_all({"w": weight}, device, None, {"w": 3})["w"]
    wanted = weight.decode()[40:].astype(np.float16)
    assert np.array_equal(halves_of(device, matrix, 0, 20, expert=2), wanted)


@pytest.mark.parametrize("columns", [1, 3, 6])
def test_plain_numbers_may_have_any_columns(device, columns):
    weight = random_weight("f16", 7, columns)
    matrix = pack_all({"w": weight}, device, None)["w"]
    assert np.array_equal(halves_of(device, matrix, 1, 5), weight.decode()[1:6].astype(np.float16))


def test_long_rows_are_shared_by_several_blocks(device):
    weight = random_weight("q5_1", 17, 1312)
    matrix = pack_all({"w": weight}, device, None)["w"]
    assert np.array_equal(halves_of(device, matrix, 0, 17), weight.decode().astype(np.float16))
