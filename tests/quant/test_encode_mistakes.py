"""Arrays of odd shapes, kinds and layouts, in every format that can be written."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.errors import ConfigError
from halfbyte.quant import FORMATS
from halfbyte.quant.encode_rows import encode_rows
from halfbyte.quant.search import NUMPY

WRITABLE = [name for name, format in FORMATS.items() if format.encode_blocks or format.encoder]
SEARCHED = [name for name, format in FORMATS.items() if format.encoder]


@pytest.mark.parametrize("name", WRITABLE)
@pytest.mark.parametrize("shape", [(0,), (3, 0), (2, 3, 0)])
def test_rows_of_nothing_are_no_bytes(name, shape):
    assert FORMATS[name].encode(np.zeros(shape, np.float32)).shape == shape


@pytest.mark.parametrize("name", WRITABLE)
def test_bytes_do_not_depend_on_how_an_array_lies_in_memory(name, rng):
    values = rng.standard_normal((6, 2 * FORMATS[name].block_len)).astype(np.float32)
    wanted = FORMATS[name].encode(values)
    assert np.array_equal(FORMATS[name].encode(values[::2]), wanted[::2])
    for same in (np.asfortranarray(values), values.astype(np.float64), values.astype(">f4")):
        assert np.array_equal(FORMATS[name].encode(same), wanted)
    assert FORMATS[name].encode(values[:0]).shape == (0, wanted.shape[1])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", SEARCHED)
def test_doubles_too_large_for_a_float_are_refused_without_a_warning(name):
    with pytest.raises(ConfigError, match="row 1 has inf in column 0"):
        encode_rows(FORMATS[name], np.array([[0.0], [1e300]]) * np.ones(FORMATS[name].block_len), None, NUMPY)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", SEARCHED)
@pytest.mark.parametrize("wrong", ["nan", "inf", "negative", "short", "one", "empty", "per row"])
def test_an_importance_that_cannot_be_is_refused(name, wrong):
    n = FORMATS[name].block_len
    ones = np.ones(n, np.float32)
    spoilt = {"nan": np.nan, "inf": np.inf, "negative": -1}
    shapes = {"short": ones[1:], "one": ones[:1], "empty": ones[:0], "per row": np.ones((1, n), np.float32)}
    importance = np.where(np.arange(n) == n - 1, spoilt[wrong], ones) if wrong in spoilt else shapes[wrong]
    with pytest.raises(ConfigError, match="the importance has "):
        encode_rows(FORMATS[name], np.ones((1, n), np.float32), importance, NUMPY)
