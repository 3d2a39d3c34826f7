"""The emulator does what a GPU does, and says what a GPU would suffer in silence."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.gpu_offload.arrays import download, run, upload
from tests.gpu_offload.emulated.compiler import HERE, KERNELS
from tests.gpu_offload.probes import FINE, ORDERS, RNG, floats, probing


def test_the_words_of_both_worlds_are_the_same():
    def words(path: Path) -> set[str]:
        text = path.read_text()
        return set(re.findall(r"^(?:template.*?> )?WORD (.*?\))", text, re.M)) | set(
            re.findall(r"^typedef .*;", text, re.M)
        )

    assert words(HERE / "words.cuh") == words(KERNELS / "words.cuh")


@pytest.mark.parametrize("order", ORDERS)
def test_lanes_exchange_values_and_vote(order):
    device, x = probing(order), floats(4, 32)
    sums, votes = device.allocate(512), device.allocate(512)
    run(device, "probe_shuffles", (2,), 64, upload(device, x), sums, votes)
    expected = x.sum(1, keepdims=True) + x[:, 3:4]
    np.testing.assert_allclose(download(device, sums, np.float32, (4, 32)), np.repeat(expected, 32, 1), rtol=1e-4)
    ballots = (x > 0) @ (1 << np.arange(32, dtype=np.uint64))
    assert (download(device, votes, np.uint32, (4, 32)) == ballots[:, None]).all()


@pytest.mark.parametrize("order", ORDERS)
def test_a_barrier_orders_and_a_missing_one_shows(order):
    device, x = probing(order), floats(96)
    out = device.allocate(x.nbytes)
    run(device, "probe_reverse<true>", (1,), 96, upload(device, x), out, shared=x.nbytes)
    assert np.array_equal(download(device, out, np.float32, (96,)), x[::-1])
    run(device, "probe_reverse<false>", (1,), 96, upload(device, x), out, shared=x.nbytes)
    assert np.isnan(download(device, out, np.float32, (96,))).any()


@pytest.mark.parametrize("order", ORDERS)
def test_some_warps_of_a_block_meet(order):
    device, x = probing(order), floats(3, 64)
    out = device.allocate(x.nbytes)
    run(device, "probe_pairs", (1,), 192, upload(device, x), out, shared=x.nbytes)
    assert np.array_equal(download(device, out, np.float32, (3, 64))[:2], x[:2, ::-1])


@pytest.mark.parametrize("order", ORDERS)
def test_blocks_run_in_the_order_of_the_seed(order):
    device = probing(order)
    counter, turns = upload(device, np.zeros(1, np.int32)), device.allocate(4 * 24)
    run(device, "probe_turns", (6, 4), 32, counter, turns)
    got = download(device, turns, np.int32, (24,))
    assert sorted(got) == list(range(24))
    assert (list(got) == list(range(24))) == (order == 0)
    assert (list(got) == list(range(24))[::-1]) == (order == 1)


@pytest.mark.parametrize("order", ORDERS)
def test_blocks_may_wait_for_each_other(order):
    device = probing(order)
    counters, numbers, sums = upload(device, np.zeros(2, np.uint32)), device.allocate(20), device.allocate(80)
    run(device, "probe_grid", (5,), 64, counters, numbers, sums, 5, shared=64)
    expected = np.arange(1, 4) * 15 + 101 * np.arange(1, 6)[:, None]
    assert np.array_equal(download(device, sums, np.int32, (5, 4))[:, 1:], expected)
    counters = upload(device, np.zeros(2, np.uint32))
    run(device, "probe_grid", (5,), 64, counters, numbers, sums, 6, shared=64)
    with pytest.raises(AssertionError, match="5 blocks wait for others, and nothing changes"):
        device.synchronize()


def test_copies_arrive_when_they_are_waited_for():
    device, x = probing(), floats(32, 5, 4)
    out = device.allocate(x.nbytes)
    run(device, "probe_copies<0>", (1,), 32, upload(device, x), out, 5, shared=x.nbytes)
    assert np.array_equal(download(device, out, np.float32, x.shape), x)
    run(device, "probe_copies<2>", (1,), 32, upload(device, x), out, 5, shared=x.nbytes)
    got = download(device, out, np.float32, x.shape)
    assert np.array_equal(got[:, :3], x[:, :3])
    assert np.isnan(got[:, 3:]).all()


@pytest.mark.parametrize("k", [16, 32])
def test_products_of_bytes_are_exact(k):
    device = probing()
    a, b = (RNG.integers(-128, 128, (n, k)).astype(np.int8) for n in (16, 8))
    out = device.allocate(16 * 8 * 4)
    run(device, f"probe_bytes<{k}>", (1,), 32, upload(device, a), upload(device, b), out)
    assert np.array_equal(download(device, out, np.int32, (16, 8)), a.astype(np.int32) @ b.astype(np.int32).T)


@pytest.mark.parametrize("transposed", [False, True])
def test_products_of_halves_round_once(transposed):
    device = probing()
    a, b = floats(16, 16).astype(np.float16), floats(8, 16).astype(np.float16)
    out = device.allocate(16 * 8 * 4)
    given = np.ascontiguousarray(b.T) if transposed else b
    run(device, f"probe_halves<{str(transposed).lower()}>", (1,), 32, upload(device, a), upload(device, given), out)
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_allclose(download(device, out, np.float32, (16, 8)), exact, rtol=1e-6, atol=1e-7)


def test_conversions_round_as_numpy_does():
    device = probing()
    halves = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(over="ignore", invalid="ignore"):
        x = RNG.integers(0, 1 << 32, 1 << 16, dtype=np.uint32).view(np.float32)
        x[: 1 << 14] = halves[: 1 << 14].view(np.float16).astype(np.float32) * np.float32(1 + 2**-11)
        x[1 << 14 : 1 << 15] = floats(1 << 14) * 1000
        expected = x.astype(np.float16)
    rounded, widened, whole = (device.allocate(x.size * size) for size in (2, 4, 4))
    arguments = (upload(device, x), upload(device, halves), rounded, widened, whole, x.size)
    run(device, "probe_conversions", (1,), 256, *arguments)
    got = download(device, rounded, np.uint16, x.shape).view(np.float16)
    np.testing.assert_array_equal(got, expected)
    with np.errstate(invalid="ignore"):
        wide = halves.view(np.float16).astype(np.float32)
    np.testing.assert_array_equal(download(device, widened, np.float32, x.shape), wide)
    finite = np.where(np.isnan(x), np.float32(0), x).astype(np.float64)
    clipped = np.clip(np.rint(finite), -(2**31), 2**31 - 1)
    np.testing.assert_array_equal(download(device, whole, np.int32, x.shape), clipped.astype(np.int32))


def test_bytes_are_picked_and_dotted():
    device = probing()
    a, b = (RNG.integers(0, 1 << 32, 32, dtype=np.uint32) for _ in range(2))
    selectors = RNG.integers(0, 1 << 16, 32, dtype=np.uint32)
    permuted, dots = device.allocate(128), device.allocate(128)
    run(device, "probe_bits", (1,), 32, upload(device, a), upload(device, b), upload(device, selectors), permuted, dots)
    bytes_of = np.stack([a, b], 1).view(np.uint8)
    picks = selectors[:, None] >> 4 * np.arange(4) & 15
    chosen = np.take_along_axis(bytes_of, (picks & 7).astype(np.int64), 1)  # the upper bit is ignored
    assert np.array_equal(download(device, permuted, np.uint32, (32,)), chosen.view(np.uint32)[:, 0])
    signed = np.stack([a, b]).view(np.int8).reshape(2, 32, 4).astype(np.int32)
    assert np.array_equal(download(device, dots, np.int32, (32,)), signed.prod(0).sum(1) + 7)


MISTAKES = {
    0: "lane 16 waits at a shuffle, lane 15 has ended",
    1: "lane 0 waits at a shuffle, lane 5 is at __syncthreads",
    2: "lane 1 is at __syncwarp while lane 0 waits at a shuffle",
    3: "wrote outside of 64 bytes of dynamic shared memory",
    5: "which is not there",
    6: "ended without wait_for_previous",
    7: "misaligned",
    9: "which is not there",
    10: r"thread 0 waits at meet\(3, 2\): 32 threads have come",
}


@pytest.mark.parametrize("which", MISTAKES)
def test_a_mistake_is_an_error_that_names_it_and_the_device_lives(which):
    device = probing()
    out = device.allocate(128)
    run(device, "probe_mistake", (1,), 32, out, which, 1.0, shared=64)
    with pytest.raises(AssertionError, match=f"probe_mistake, block.*{MISTAKES[which]}"):
        device.synchronize()
    run(device, "probe_mistake", (1,), 32, out, FINE, 2.0, shared=64)
    assert (download(device, out, np.float32, (32,)) == 2).all()


def test_writing_behind_a_buffer_is_noticed():
    device = probing()
    out = device.allocate(128)
    run(device, "probe_mistake", (1,), 32, out, 4, 1.0, shared=64)
    with pytest.raises(AssertionError, match="behind a buffer of 128 bytes"):
        device.synchronize()
    for address in (out.address - 1, out.address + 1):
        device.copy_in(address, np.zeros(128, np.uint8))
        with pytest.raises(AssertionError, match="not in any buffer"):
            device.synchronize()


@pytest.mark.parametrize("order", ORDERS)
def test_touching_what_is_still_written_before_the_wait_is_noticed(order):
    device = probing(order)
    out = upload(device, floats(32))
    run(device, "probe_mistake", (2,), 64, out, 12, 1.0, shared=64)
    device.synchronize()
    run(device, "probe_mistake", (2,), 64, out, 13, 1.0, shared=64)
    with pytest.raises(AssertionError, match="before wait_for_previous"):
        device.synchronize()
    run(device, "probe_mistake", (2,), 64, out, FINE, 1.0, shared=64)
    run(device, "probe_mistake", (2,), 64, out, 12, 1.0, shared=64)
    with pytest.raises(AssertionError, match="before wait_for_previous"):
        device.synchronize()
    run(device, "probe_mistake", (2,), 64, out, 12, 3.0, shared=64)  # what the host has waited for may be read
    assert (download(device, out, np.float32, (32,)) == 1).all()


def test_memory_is_poisoned_wherever_it_comes_from():
    device = probing()
    out = device.allocate(128)
    assert np.isnan(download(device, out, np.float32, (32,))).all()
    for _ in range(2):
        run(device, "probe_mistake", (1,), 32, out, 8, 1.0, shared=64)
        assert np.isnan(download(device, out, np.float32, (32,))).all()
