"""The emulated device keeps the promises of its face, and holds callers to theirs."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.errors import ResourceError
from halfbyte.gpu_offload.device import Launch, Product
from tests.gpu_offload.arrays import download, run, upload
from tests.gpu_offload.probes import FINE, floats, probing


def test_arguments_must_be_of_the_kind_of_their_parameters():
    device = probing()
    out = device.allocate(128)
    with pytest.raises(AssertionError, match="arguments are 'iii', parameters 'iif'"):
        device.launch(Launch("probe_mistake", (1, 1, 1), 32, (out.address, 1, 1)))


def test_kernels_that_do_not_compile_say_why():
    with pytest.raises(AssertionError, match="probe_unheard_of"):
        probing().load(["probe_unheard_of<3>"], None)


def test_a_recording_runs_as_often_as_it_is_replayed():
    device = probing()
    counter, turns = upload(device, np.zeros(1, np.int32)), device.allocate(4)
    recording = device.record(lambda: run(device, "probe_turns", (1,), 32, counter, turns))
    assert download(device, counter, np.int32, (1,))[0] == 0
    recording.replay()
    recording.replay()
    assert download(device, counter, np.int32, (1,))[0] == 2
    for wrong in (lambda: device.allocate(1), device.synchronize):
        with pytest.raises(AssertionError, match="while recording"):
            device.record(wrong)


def test_copies_leave_pinned_memory_when_they_run_and_other_memory_at_once():
    device = probing()
    for source, expected in ((device.pinned(4), 9), (np.zeros(4, np.uint8), 1)):
        source[:] = 1
        target, other = device.allocate(4), device.allocate(4)
        device.copy_in(target.address, source)
        device.copy(other.address, target.address, 4)
        source[:] = 9
        assert (download(device, other, np.uint8, (4,)) == expected).all()


def test_products_are_of_rows():
    device = probing()
    x, weight = floats(3, 8).astype(np.float16), floats(5, 8).astype(np.float16)
    out = device.allocate(60)
    buffers = upload(device, x), upload(device, weight)
    device.multiply(Product(buffers[0].address, buffers[1].address, out.address, tokens=3, columns=8, rows=5))
    expected = x.astype(np.float32) @ weight.astype(np.float32).T
    np.testing.assert_allclose(download(device, out, np.float32, (3, 5)), expected, rtol=1e-5)


def test_memory_ends_and_comes_back():
    device = probing(budget=1000)
    held = device.allocate(600)
    with pytest.raises(ResourceError) as caught:
        device.allocate(500)
    assert (caught.value.needed, caught.value.free) == (500, 400)
    del held
    assert device.allocate(500).address % 256 == 0


def test_a_lost_device_stays_lost():
    device = probing()
    out = device.allocate(128)
    device.fail_after(1)
    run(device, "probe_mistake", (1,), 32, out, FINE, 2.0)
    device.synchronize()
    run(device, "probe_mistake", (1,), 32, out, FINE, 2.0)
    for attempt in (device.synchronize, device.synchronize, lambda: device.allocate(1)):
        with pytest.raises(ResourceError, match="lost"):
            attempt()
    device.close()
    device.close()
