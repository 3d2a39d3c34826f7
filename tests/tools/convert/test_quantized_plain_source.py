"""How a checkpoint is quantized is read from its config; what we cannot read is refused by name."""

from __future__ import annotations

import re
import threading

import numpy as np
import pytest

from halfbyte.errors import FormatError, UnsupportedError
from halfbyte.tools.convert.quantized import plain_source
from halfbyte.tools.convert.quantized.methods import METHODS
from halfbyte.tools.convert.quantized.recent import Recent
from tests.source_tree import PACKAGE, parse
from tests.test_registries import defines, modules_named
from tests.tools.convert.stored_arrays import FILE, StoredArrays, plain

OTHERS = ["bitsandbytes", "hqq", "aqlm", "eetq", "quanto", "torchao", "vptq", "spqr", "higgs", "bitnet", "quark"]
PLAIN = {"x.weight": np.ones((2, 3), np.float32)}


def test_a_plain_checkpoint_stays_as_it_is():
    source = StoredArrays(**PLAIN)
    assert plain_source(source, {}) is source
    assert plain_source(source, {"quantization_config": None, "text_config": {}}) is source


@pytest.mark.parametrize("method", list(METHODS))
def test_a_config_that_says_quantized_of_plain_tensors(method):
    source = plain(StoredArrays(**PLAIN), quant_method=method, bits=4, config_groups={})
    assert list(source.tensors) == ["x.weight"]
    np.testing.assert_array_equal(source.read("x.weight", 1), PLAIN["x.weight"][1:], strict=True)


@pytest.mark.parametrize("method", OTHERS)
def test_other_methods_are_refused_by_name_with_what_to_do(method):
    known = re.escape(", ".join(METHODS))
    with pytest.raises(UnsupportedError, match=rf"config\.json.*'{method}'.*bf16.*known: {known}"):
        plain(StoredArrays(**PLAIN), quant_method=method)


@pytest.mark.parametrize("key", ["load_in_4bit", "load_in_8bit"])
def test_an_old_config_of_bitsandbytes(key):
    with pytest.raises(UnsupportedError, match="'bitsandbytes'"):
        plain(StoredArrays(**PLAIN), **{key: True})


@pytest.mark.parametrize("settings", [{}, {"quant_method": 4}, {"quant_method": ""}])
def test_a_config_that_does_not_say_how(settings):
    with pytest.raises(FormatError, match=r"config\.json.*quantization_config\.quant_method"):
        plain(StoredArrays(**PLAIN), **settings)


@pytest.mark.parametrize("settings", [[], 4, "fp8"])
def test_a_config_that_is_no_section(settings):
    with pytest.raises(FormatError, match=r"config\.json.*quantization_config"):
        plain_source(StoredArrays(**PLAIN), {"quantization_config": settings})


@pytest.mark.parametrize("place", ["compression_config", "quantization_config"])
def test_a_config_of_several_parts(place):
    config = {"text_config": {place: {"quant_method": "hqq"}}}
    with pytest.raises(UnsupportedError, match="'hqq'"):
        plain_source(StoredArrays(**PLAIN), config)


@pytest.mark.parametrize(
    "name",
    ["x.qweight", "x.weight_packed", "x.weight_scale_inv", "x.weight_scale", "x.down_proj_blocks", "x.weight.absmax"],
)
def test_quantized_tensors_without_a_config_that_says_so(name):
    with pytest.raises(FormatError, match=rf"{FILE.name}.*'{re.escape(name)}'.*no quantization_config"):
        plain_source(StoredArrays(**PLAIN, **{name: np.ones(3, np.float32)}), {})


def test_every_method_file_is_in_the_table():
    folder = PACKAGE / "tools/convert/quantized"
    files = {path.stem for path in folder.glob("*.py") if defines(path, "weights") and parse(path)}
    assert files == modules_named(METHODS)
    assert all(callable(METHODS[name]) for name in METHODS)


def test_the_latest_are_kept_as_far_as_there_is_room():
    made = []
    recent = Recent(100)

    def get(key, size):
        return recent.get(key, lambda: made.append(key) or np.zeros(size, np.uint8))

    get("a", 60)
    get("b", 40)
    get("a", 60)
    get("c", 40)  # takes the place of "b"
    get("a", 60)
    get("b", 40)
    assert made == ["a", "b", "c", "b"]
    assert len(get("large", 1000)) == 1000
    get("large", 1000)
    assert made == ["a", "b", "c", "b", "large"]


def test_what_many_threads_want_is_made_once():
    made = []
    recent = Recent(100)
    threads = [threading.Thread(target=recent.get, args=("a", lambda: made.append(1) or np.zeros(3))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]


def test_what_could_not_be_made_is_tried_again():
    recent = Recent(100)

    def fail():
        raise FormatError("no")

    with pytest.raises(FormatError):
        recent.get("a", fail)
    np.testing.assert_array_equal(recent.get("a", lambda: np.ones(2)), np.ones(2))
