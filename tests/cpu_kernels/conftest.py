"""Kernels of the detected instruction set, compiled (or found in the user's cache) before the first test."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu_kernels.kernel_sets import ready


@pytest.fixture(scope="session")
def kernels():
    """Every kernel of the detected instruction set."""
    return ready()


@pytest.fixture
def rng():
    return np.random.default_rng(7)
