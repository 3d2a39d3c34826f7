"""Checkpoints of auto-round are packed as others pack theirs."""

from __future__ import annotations

import pytest

from halfbyte.errors import FormatError, UnsupportedError
from tests.tools.convert import test_quantized_awq as awq
from tests.tools.convert import test_quantized_gptq as gptq
from tests.tools.convert.stored_arrays import StoredArrays, check, plain


def source_of(arrays, **settings):
    given = {"quant_method": "auto-round", "bits": 4, "group_size": 32, "sym": True, "data_type": "int"} | settings
    return plain(StoredArrays(**arrays), **given)


@pytest.mark.parametrize("settings", [{"packing_format": "auto_round:auto_gptq"}, {"quant_method": "intel/auto-round"}])
def test_packed_as_gptq(settings):
    arrays, weight = gptq.packed(4, symmetric=True)
    check(source_of(arrays, **settings), "x.weight", weight)


def test_modules_of_different_bits():
    arrays, weight = gptq.packed(8, symmetric=True)
    check(source_of(arrays, extra_config={"x": {"bits": 8}}), "x.weight", weight)


def test_packed_as_awq():
    arrays, weight = awq.packed()
    check(source_of(arrays, packing_format="auto_round:auto_awq"), "x.weight", weight)


@pytest.mark.parametrize("settings", [{"packing_format": "auto_round:gguf"}, {"data_type": "mx_fp"}])
def test_other_packings_are_refused_by_name(settings):
    with pytest.raises(UnsupportedError, match=rf"config\.json.*{next(iter(settings.values()))}.*known: int packed as"):
        source_of(gptq.packed(4)[0], **settings)


def test_settings_that_make_no_sense():
    with pytest.raises(FormatError, match=r"config\.json.*packing_format"):
        source_of(gptq.packed(4)[0], packing_format=4)
