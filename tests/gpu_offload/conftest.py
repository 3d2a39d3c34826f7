"""The device that kernels are tested on: an emulated one, or with HALFBYTE_TEST_DEVICE=cuda a real one."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest

from halfbyte.gpu_offload.cuda_device import CudaDevice
from halfbyte.gpu_offload.cuda_memory import CudaBuffer
from halfbyte.gpu_offload.device import Device
from tests.gpu_offload.emulated.compiler import missing
from tests.gpu_offload.emulated.device import EmulatedDevice
from tests.gpu_offload.emulated.memory import POISON


class PoisonedDevice(CudaDevice):
    """A real device whose memory is as unkind as that of the emulated one."""

    def allocate(self, n_bytes: int) -> CudaBuffer:
        buffer = super().allocate(n_bytes)
        self.copy_in(buffer.address, np.full(n_bytes, POISON, np.uint8))
        return buffer

    def close(self) -> None:
        """Every model under test closes its device; this one goes on to the next, as the emulated one does."""
        self.synchronize()


@pytest.fixture(scope="session")
def device() -> Iterator[Device]:
    if os.environ.get("HALFBYTE_TEST_DEVICE") == "cuda":
        made = PoisonedDevice.open()
    else:
        reason = missing()
        if reason:
            pytest.skip(reason)
        made = EmulatedDevice(order=7)  # a random one: fewer mistakes stay hidden than in a plain one
    yield made
    if isinstance(made, PoisonedDevice):
        CudaDevice.close(made)
    else:
        made.close()


@pytest.fixture
def emulated(device: Device) -> EmulatedDevice:
    """The same device where one can say in which order its threads run."""
    if not isinstance(device, EmulatedDevice):
        pytest.skip("a real device runs its threads as it likes")
    return device
