"""What the code of a real GPU asks for, of a driver and a CuPy that only take notes."""

from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest

from halfbyte.errors import ConfigError, ResourceError
from halfbyte.gpu_offload import cuda_card, cuda_device
from halfbyte.gpu_offload.cubin_cache import Cubin
from halfbyte.gpu_offload.cuda_card import require_driver
from halfbyte.gpu_offload.cuda_driver import LaunchAttribute, LaunchConfig
from halfbyte.gpu_offload.device import Launch, Product
from tests.gpu_offload.fake_cuda import FakeCupy, FakeError, fake_driver


def test_structs_lie_as_in_the_drivers_header():
    assert ctypes.sizeof(LaunchAttribute) == 72
    assert LaunchAttribute.value.offset == 8
    assert ctypes.sizeof(LaunchConfig) == 56
    offsets = {name: getattr(LaunchConfig, name).offset for name, _ in LaunchConfig._fields_}
    assert offsets == {"grid": 0, "block": 12, "shared_bytes": 24, "stream": 32, "attributes": 40, "n_attributes": 48}


class FakeCompiler:
    def __init__(self, capability: tuple[int, int]) -> None:
        self.capability = capability

    def cubins(self, kernels, progress):
        return [Cubin({name: f"_{name}" for name in kernels}, b"code")], 1


class FakeBlas:
    def __init__(self, library: object, stream: int, workspace: int) -> None:
        self.products: list[Product] = []

    def multiply(self, product: Product) -> None:
        self.products.append(product)

    def close(self) -> None:
        pass


@pytest.fixture
def opened(monkeypatch):
    monkeypatch.setattr(cuda_device, "CubinCompiler", FakeCompiler)
    monkeypatch.setattr(cuda_device, "Blas", FakeBlas)
    monkeypatch.setattr(cuda_device, "find_cublas", lambda major: None)
    driver, library = fake_driver()
    monkeypatch.setattr(cuda_card, "find_driver", lambda: driver)
    _, card = require_driver()
    made = cuda_device.CudaDevice(FakeCupy, driver, card)
    made.load(["kernel"], None)
    return made, library


def test_a_device_is_described(opened):
    device, library = opened
    assert (device.name, device.capability, device.multiprocessors) == ("Fake 9000", (9, 0), 132)
    assert device.shared_bytes == 232448
    assert device.free_bytes() == 1000 + 24
    assert library.contexts == []


def test_a_launch_takes_words_and_overlaps(opened):
    device, library = opened
    device.launch(Launch("kernel", (3, 2, 1), 96, (1 << 40, -2, 1.5), 128))
    [seen] = library.launches
    assert (seen["grid"], seen["block"], seen["shared"]) == ((3, 2, 1), (96, 1, 1), 128)
    assert seen["overlap"] == [(6, 1)]
    assert seen["words"][:2] == [1 << 40, 2**64 - 2]
    assert seen["words"][2] & 0xFFFFFFFF == np.float32(1.5).view(np.uint32)


def test_more_shared_memory_is_asked_for_once(opened):
    device, library = opened
    for shared in (48 << 10, 100 << 10, 90 << 10):
        device.launch(Launch("kernel", (1, 1, 1), 32, (), shared))
    assert library.calls.count("cuFuncSetAttribute") == 1


def test_cards_before_9_0_do_not_overlap(opened, monkeypatch):
    _, library = opened
    library.attributes[75] = 8
    driver, card = require_driver()
    device = cuda_device.CudaDevice(FakeCupy, driver, card)
    device.load(["kernel"], None)
    device.launch(Launch("kernel", (1, 1, 1), 32, ()))
    assert library.launches[-1]["overlap"] == []


def test_a_lost_device_says_so_at_every_later_call(opened):
    device, library = opened
    recording = device.record(lambda: None)
    library.codes["cuStreamSynchronize"] = 719
    with pytest.raises(ResourceError, match=r"Fake 9000 was lost \(cuStreamSynchronize.*719\)\); load the model again"):
        device.synchronize()
    library.codes.clear()
    later = (
        device.synchronize,
        device.free_bytes,
        recording.replay,
        lambda: device.allocate(1),
        lambda: device.pinned(1),
        lambda: device.launch(Launch("kernel", (1, 1, 1), 32, ())),
        lambda: device.copy(1, 2, 3),
    )
    for attempt in later:
        with pytest.raises(ResourceError, match="was lost"):
            attempt()
    assert library.contexts == []
    device.close()
    device.close()


def test_a_card_without_memory_for_its_own_work_is_not_lost(opened):
    """With figures, so that "auto" takes fewer layers."""
    device, library = opened
    library.codes["cuLaunchKernelEx"] = 2
    with pytest.raises(ResourceError, match="no memory left for its own work") as raised:
        device.launch(Launch("kernel", (1, 1, 1), 32, ()))
    assert raised.value.needed == cuda_device.OWN_WORK_BYTES
    assert raised.value.free == 0
    library.codes.clear()
    device.synchronize()


def test_a_wrong_launch_is_our_mistake_and_loses_nothing(opened):
    device, library = opened
    library.codes["cuLaunchKernelEx"] = 1
    with pytest.raises(AssertionError, match="cuLaunchKernelEx"):
        device.launch(Launch("kernel", (1, 1, 1), 4096, ()))
    library.codes.clear()
    device.synchronize()
    assert library.contexts == []


def test_memory_that_ends_is_told_with_figures(opened):
    device, _ = opened
    with pytest.raises(ResourceError) as caught:
        device.allocate(1 << 31)
    assert (caught.value.needed, caught.value.free) == (1 << 31, 1024)
    device._pool.error = FakeError("sticky")
    with pytest.raises(ResourceError, match="was lost"):
        device.allocate(8)


def test_a_recording_is_captured_replayed_and_destroyed(opened):
    device, library = opened
    recording = device.record(lambda: device.launch(Launch("kernel", (1, 1, 1), 32, ())))
    order = [name for name in library.calls if "Capture" in name or "Graph" in name or "Launch" in name]
    assert order == [
        *("cuStreamBeginCapture_v2", "cuLaunchKernelEx", "cuStreamEndCapture"),
        *("cuGraphInstantiateWithFlags", "cuGraphUpload", "cuGraphDestroy"),
    ]
    recording.replay()
    assert library.calls.count("cuGraphLaunch") == 1
    del recording
    gc.collect()
    assert library.calls.count("cuGraphExecDestroy") == 1
    assert library.contexts == []


def test_a_recording_that_fails_ends_its_capture(opened):
    device, library = opened
    for wrong in (lambda: device.allocate(1), device.synchronize):
        with pytest.raises(AssertionError, match="while recording"):
            device.record(wrong)
    assert library.calls.count("cuStreamEndCapture") == library.calls.count("cuGraphDestroy") == 2
    device.synchronize()


def test_pinned_memory_is_freed_with_its_last_array(opened):
    device, library = opened
    block = ctypes.create_string_buffer(64)
    library.special["cuMemHostAlloc"] = lambda where, size, flags: library.write(where, ctypes.addressof(block))
    array = device.pinned(64)
    part = array[3:9].view(np.uint16)
    del array
    gc.collect()
    part[:] = 7
    assert "cuMemFreeHost" not in library.calls
    del part
    gc.collect()
    assert library.calls.count("cuMemFreeHost") == 1


def test_closing_lets_go_once(opened):
    device, library = opened
    device.close()
    device.close()
    for name in ("cuModuleUnload", "cuStreamDestroy_v2", "cuDevicePrimaryCtxRelease_v2"):
        assert library.calls.count(name) == 1
    assert library.contexts == []
    with pytest.raises(AssertionError, match="closed"):
        device.synchronize()


def test_a_device_that_does_not_begin_lets_go_of_the_card(opened, monkeypatch):
    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open")

    device, library = opened
    monkeypatch.undo()
    monkeypatch.setattr(cuda_device, "CubinCompiler", FakeCompiler)
    monkeypatch.setattr(ctypes, "CDLL", missing)
    with pytest.raises(ConfigError, match=r"cuBLAS of CUDA 13 does not load .*cuda12"):
        cuda_device.CudaDevice(FakeCupy, device._driver, device._card)
    assert library.calls[-1] == "cuDevicePrimaryCtxRelease_v2"
