"""The kernels of probes.cuh on an emulated device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.gpu_offload.emulated.compiler import missing
from tests.gpu_offload.emulated.device import EmulatedDevice

PROBES = Path(__file__).parent / "probes.cuh"
ORDERS = (0, 1, 7)
RNG = np.random.default_rng(1)
FINE = 11  # of `probe_mistake`: none


def probing(order: int = 0, budget: int = 1 << 30) -> EmulatedDevice:
    reason = missing()
    if reason:
        pytest.skip(reason)
    made = EmulatedDevice(order=order, budget=budget, more_kernels=(PROBES,))
    made.load(EVERY_PROBE, None)
    return made


EVERY_PROBE = (
    *("probe_shuffles", "probe_reverse<true>", "probe_reverse<false>", "probe_copies<0>", "probe_copies<2>"),
    *("probe_bytes<16>", "probe_bytes<32>", "probe_halves<false>", "probe_halves<true>"),
    *("probe_pairs", "probe_mistake", "probe_conversions", "probe_bits", "probe_turns", "probe_grid"),
)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)
