"""Products by one thread for a while, and as before afterwards."""

from __future__ import annotations

import pytest

from halfbyte.tools.quantize import one_blas_thread as module
from halfbyte.tools.quantize.one_blas_thread import one_blas_thread


@pytest.fixture
def told(monkeypatch):
    counts = [4]
    monkeypatch.setattr(module, "_openblas", lambda: (lambda: counts[-1], counts.append))
    return counts


def test_the_number_comes_back_even_after_an_error(told):
    with pytest.raises(KeyError), one_blas_thread():
        raise KeyError
    assert told == [4, 1, 4]


def test_another_library_is_left_alone(monkeypatch):
    monkeypatch.setattr(module, "_openblas", lambda: None)
    with one_blas_thread():
        pass


def test_the_library_that_numpy_brings_is_found():
    found = module._openblas()
    if found is None:
        pytest.skip("NumPy has no OpenBLAS of its own here")
    with one_blas_thread():
        assert found[0]() == 1
    assert found[0]() >= 1
