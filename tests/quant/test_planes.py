import numpy as np
import pytest

from halfbyte.quant import FORMATS
from tests.quant.random_blocks import random_blocks

WITH_PLANES = [name for name in FORMATS if FORMATS[name].planes is not None]


@pytest.fixture(params=WITH_PLANES)
def case(request, rng):
    format = FORMATS[request.param]
    blocks = random_blocks(format, 200, rng)
    return format, blocks, format.planes(blocks)


def test_shapes_and_types(case):
    format, blocks, planes = case
    assert planes.q.dtype == np.int16
    assert planes.q.shape == (len(blocks), format.block_len)
    for plane in (planes.scale,) if planes.offset is None else (planes.scale, planes.offset):
        assert plane.dtype == np.float32
        assert plane.shape == planes.scale.shape
    assert len(planes.scale) == len(blocks)
    assert format.block_len // planes.scale.shape[1] in (16, 32, 128, 256)
    assert format.block_len % planes.scale.shape[1] == 0


def test_products_are_exact_so_a_fused_multiply_add_gives_the_same(case):
    format, blocks, planes = case
    group = format.block_len // planes.scale.shape[1]
    product = planes.q * np.repeat(planes.scale, group, axis=1).astype(np.float64)
    assert np.array_equal(product, product.astype(np.float32))
    offset = 0 if planes.offset is None else np.repeat(planes.offset, group, axis=1).astype(np.float64)
    assert np.array_equal((product + offset).astype(np.float32), format.decode(blocks))


def test_integers_fit_what_kernels_keep_them_in(case):
    planes = case[2]
    assert np.abs(planes.q).max() <= 128
