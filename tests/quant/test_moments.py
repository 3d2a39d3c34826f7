import numpy as np
import pytest

from halfbyte.quant.iq4_nl import LEVELS
from halfbyte.quant.moments import moments
from halfbyte.quant.search import NUMPY

WHOLE = np.arange(16, dtype=np.int16)


def groups(rng, n=6, per_block=4, length=32):
    """Weights and how much their errors count, f32[n * per_block, length]; scales and offsets f32[per_block, n]."""
    x = rng.standard_normal((n * per_block, length), dtype=np.float32)
    w = rng.uniform(0, 1, x.shape).astype(np.float32)
    return x, w, rng.uniform(0.1, 0.3, (per_block, n)).astype(np.float32), -rng.random((per_block, n), dtype=np.float32)


def error(x, w, codes, levels, scale, offset):
    """f64[per_block, n], written out."""
    fit = levels[codes] * scale.T.reshape(-1, 1).astype(np.float64) + offset.T.reshape(-1, 1)
    return (w * (x - fit) ** 2).sum(axis=1).reshape(scale.T.shape).T


@pytest.mark.parametrize("levels", [WHOLE, LEVELS])
def test_the_error_of_any_scale_and_offset_is_told_without_the_weights(levels, rng):
    x, w, scale, offset = groups(rng)
    found = moments(x, w, scale, offset, levels, NUMPY)
    codes = NUMPY.codes(x, scale.T.reshape(-1), offset.T.reshape(-1), levels)
    for by in (np.float32(1), np.float32(0.9), np.float32(1.3)):
        expected = error(x, w, codes, levels, scale * by, offset / by)
        assert np.allclose(found.error(scale * by, offset / by), expected, rtol=1e-4)


def test_the_best_scale_and_offset_have_no_better_neighbour(rng):
    x, w, scale, offset = groups(rng)
    found = moments(x, w, scale, offset, WHOLE, NUMPY)
    spread = found.spread()
    free = found.free_scale(spread)
    joint = found.error(free, found.best_offset(free))
    alone = found.error(found.best_scale(offset), offset)
    assert (joint <= alone).all()
    assert (alone <= found.rr * np.float32(1.0001)).all()
    for by in (np.float32(0.99), np.float32(1.01)):
        assert (joint <= found.error(free * by, found.best_offset(free * by))).all()
        assert (alone <= found.error(found.best_scale(offset) * by, offset)).all()


def test_groups_with_one_code_keep_their_scale(rng):
    x, w, scale, offset = groups(rng)
    x[:] = np.repeat(offset.T.reshape(-1, 1), x.shape[1], axis=1)
    found = moments(x, w, scale, offset, WHOLE, NUMPY)
    assert not found.rr.any()
    assert np.array_equal(found.free_scale(found.spread()), scale)
    assert np.array_equal(found.best_scale(offset), scale)
    assert np.array_equal(found.best_offset(scale), offset)
