"""The compiled walk along columns gives the bits of NumPy's."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from halfbyte.cpu_kernels.walking import CompiledWalk
from halfbyte.quant.encoder import Grid
from halfbyte.quant.walk import NUMPY_WALK

EVEN = np.arange(-8, 8, dtype=np.int16)
COUNTED = np.arange(4, dtype=np.int16)
UNEVEN = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.int16)


@cache
def compiled(isa=None):
    return CompiledWalk(isa)


def a_block(rows, columns, groups, levels, offset, seed=0):
    random = np.random.default_rng(seed)
    anchors = random.standard_normal((columns, rows)).astype(np.float32)
    targets = anchors + 0.1 * random.standard_normal((columns, rows)).astype(np.float32)
    forward = np.triu(0.2 * random.standard_normal((columns, columns)), 1).astype(np.float32)
    scale = (2 / np.abs(levels).max() * random.standard_normal((rows, groups))).astype(np.float32)
    scale[random.random(scale.shape) < 0.1] = 0
    zero = random.standard_normal((rows, groups)).astype(np.float32) if offset else None
    return targets, anchors, forward, Grid(scale, zero, levels)


def assert_same_walk(walk, targets, anchors, forward, grid):
    theirs, ours = targets.copy(), targets.copy()
    codes, values = NUMPY_WALK.codes(theirs, anchors, forward, grid)
    got_codes, got_values = walk.codes(ours, anchors, forward, grid)
    assert_array_equal(got_codes, codes)
    assert_array_equal(got_values.view(np.int32), values.view(np.int32))
    assert_array_equal(ours.view(np.int32), theirs.view(np.int32))


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("levels", [EVEN, COUNTED, UNEVEN], ids=["even", "counted", "uneven"])
@pytest.mark.parametrize(("rows", "columns", "groups"), [(16, 32, 1), (7, 256, 16), (33, 256, 8), (1, 32, 1)])
def test_codes_values_and_targets_have_the_same_bits(rows, columns, groups, levels, offset):
    assert_same_walk(compiled(), *a_block(rows, columns, groups, levels, offset))


def test_forward_may_be_a_part_of_a_larger_matrix():
    targets, anchors, forward, grid = a_block(16, 32, 1, EVEN, False)
    whole = np.full((64, 96), np.nan, np.float32)
    whole[32:, 32:64] = forward
    assert_same_walk(compiled(), targets, anchors, whole[32:, 32:64], grid)


def test_every_value_decodes_from_its_code():
    targets, anchors, forward, grid = a_block(20, 64, 4, EVEN, True)
    codes, values = compiled().codes(targets, anchors, forward, grid)
    assert_array_equal(values.T, grid.values(np.ascontiguousarray(codes.T)))


def test_without_feedback_each_weight_gets_its_nearest_level():
    _, anchors, forward, grid = a_block(48, 32, 1, UNEVEN, False)
    _, values = compiled().codes(anchors.copy(), anchors, np.zeros_like(forward), grid)
    choices = grid.scale * UNEVEN.astype(np.float32)
    least = np.abs(anchors.T[:, :, None] - choices[:, None, :]).min(axis=2)
    assert np.abs(np.abs(anchors - values).T - least).max() < 1e-5
