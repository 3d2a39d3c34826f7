"""A real GPU behind the face of a device."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import numpy as np
import pytest

from halfbyte.errors import HalfbyteError, ResourceError
from halfbyte.gpu_offload.cuda_device import CudaDevice, open_device
from halfbyte.gpu_offload.device import Product
from tests.gpu_offload.arrays import download, run, upload

pytestmark = pytest.mark.gpu
RNG = np.random.default_rng(3)


@pytest.fixture(scope="module")
def card() -> Iterator[CudaDevice]:
    if importlib.util.find_spec("cupy") is None:
        pytest.skip("CuPy is not installed")
    try:
        made = open_device()
    except HalfbyteError as error:
        pytest.skip(str(error))
    yield made
    made.close()


def halves_of(card: CudaDevice, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Halves and scales of rows of 64 floats, by a kernel that takes more shared memory than is given unasked."""
    tokens = len(x)
    halves, scales = card.allocate(tokens * 128), card.allocate(tokens * 4)
    count = upload(card, np.array([tokens], np.int32))
    arguments = (upload(card, x), 64, 64, count, 0, 0, halves, scales)
    run(card, "make_forms", (tokens,), 64, *arguments, shared=60 << 10)
    return download(card, halves, np.float16, (tokens, 64)), download(card, scales, np.float32, (tokens,))


def test_a_kernel_computes(card):
    x = RNG.standard_normal((300, 64)).astype(np.float32)
    halves, scales = halves_of(card, x)
    np.testing.assert_array_equal(halves, (x / scales[:, None]).astype(np.float16))


def test_kernels_are_compiled_once(card, monkeypatch, tmp_path):
    monkeypatch.setenv("HALFBYTE_KERNEL_CACHE", str(tmp_path))
    for compiled in (1, 0):
        other = open_device()
        assert other.load(["make_forms"], None) == compiled
        other.close()
        other.close()


def test_products_are_of_rows(card):
    x, weight = (RNG.standard_normal((n, 128)).astype(np.float16) for n in (37, 80))
    out = card.allocate(37 * 80 * 4)
    inputs = upload(card, x), upload(card, weight)
    card.multiply(Product(inputs[0].address, inputs[1].address, out.address, tokens=37, columns=128, rows=80))
    expected = x.astype(np.float64) @ weight.astype(np.float64).T
    np.testing.assert_allclose(download(card, out, np.float32, (37, 80)), expected, rtol=1e-4, atol=1e-4)


def test_a_recording_runs_as_often_as_it_is_replayed(card):
    source = card.pinned(1 << 12)
    source[:] = 3
    first, second = card.allocate(1 << 12), card.allocate(1 << 12)

    def enqueue() -> None:
        card.copy_in(first.address, source)
        card.copy(second.address, first.address, 1 << 12)

    recording = card.record(enqueue)
    for value in (5, 7):
        source[:] = value
        recording.replay()
        assert (download(card, second, np.uint8, (1 << 12,)) == value).all()


def test_a_recorded_kernel_reads_what_is_there_when_it_runs(card):
    x = RNG.standard_normal((4, 64)).astype(np.float32)
    rows, halves, scales = card.allocate(x.nbytes), card.allocate(512), card.allocate(16)
    count = upload(card, np.array([4], np.int32))
    card.load(["make_forms"], None)
    recording = card.record(
        lambda: run(card, "make_forms", (4,), 64, rows, 64, 64, count, 0, 0, halves, scales, shared=256)
    )
    card.copy_in(rows.address, x)
    recording.replay()
    expected = (x / download(card, scales, np.float32, (4,))[:, None]).astype(np.float16)
    np.testing.assert_array_equal(download(card, halves, np.float16, (4, 64)), expected)


def test_a_failed_recording_leaves_the_device_as_it_was(card):
    with pytest.raises(AssertionError, match="while recording"):
        card.record(lambda: card.allocate(1))
    test_a_kernel_computes(card)


def test_too_much_memory_is_an_error_with_figures(card):
    free = card.free_bytes()
    with pytest.raises(ResourceError) as caught:
        card.allocate(free + (1 << 32))
    assert caught.value.needed == free + (1 << 32)
    assert 0 < caught.value.free <= 2 * free
    test_a_kernel_computes(card)


def test_memory_comes_back(card):
    before = card.free_bytes()
    held = card.allocate(1 << 28)
    assert card.free_bytes() <= before - (1 << 28) + (1 << 24)
    del held
    assert card.free_bytes() >= before - (1 << 24)


def test_the_callers_device_and_stream_stay(card):
    import cupy

    with cupy.cuda.Stream(non_blocking=True) as theirs:
        array = cupy.arange(10)
        test_a_kernel_computes(card)
        assert cupy.cuda.get_current_stream() == theirs
        assert int(array.sum()) == 45
    assert cupy.get_default_memory_pool().used_bytes() < 1 << 20


@pytest.mark.usefixtures("card")
def test_a_lost_device_says_so_and_stays_lost():
    """In a process of its own: the context of the process is lost with the kernel."""
    import subprocess
    import sys

    program = """
from halfbyte.errors import ResourceError
from halfbyte.gpu_offload.cuda_device import open_device
from halfbyte.gpu_offload.device import Launch
card = open_device()
card.load(["make_forms"], None)
card.launch(Launch("make_forms", (1, 1, 1), 64, (64, 64, 64, 4096, 0, 0, 0, 0), 256))
for attempt in (card.synchronize, card.synchronize, lambda: card.allocate(8), card.free_bytes):
    try:
        attempt()
    except ResourceError as error:
        assert "lost" in str(error) and "load the model again" in str(error), error
    else:
        raise SystemExit("no error")
card.close()
card.close()
print("told")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "told\n", done.stderr
