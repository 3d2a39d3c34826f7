"""Kernels of the GPU on the CPU: one emulated device for all tests that do not need one of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gpu_offload.emulated.compiler import missing
from tests.gpu_offload.emulated.device import EmulatedDevice


@pytest.fixture(scope="session")
def device() -> Iterator[EmulatedDevice]:
    reason = missing()
    if reason:
        pytest.skip(reason)
    made = EmulatedDevice()
    yield made
    made.close()
