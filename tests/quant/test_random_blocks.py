import numpy as np
import pytest

from halfbyte.quant import FORMATS
from tests.quant.random_blocks import random_blocks


@pytest.mark.parametrize("name", FORMATS)
def test_weights_are_as_large_as_a_models(name, rng):
    values = FORMATS[name].decode(random_blocks(FORMATS[name], 300, rng))
    peaks = np.abs(values).max(axis=1)
    if FORMATS[name].block_len == 1:
        assert np.abs(values).max() <= 1
        assert np.abs(values).mean() > 0.3
    else:
        assert peaks.min() > 0.05
        assert peaks.max() < 1.05
    assert abs(values.mean()) < 0.1


@pytest.mark.parametrize("name", FORMATS)
def test_same_seed_same_bytes_and_blocks_differ(name):
    one, two = (random_blocks(FORMATS[name], 40, np.random.default_rng(7)) for _ in range(2))
    assert np.array_equal(one, two)
    assert len(np.unique(one, axis=0)) > 2
