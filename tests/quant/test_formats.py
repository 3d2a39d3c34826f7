import importlib
import pkgutil
import subprocess
import sys

import gguf
import pytest

import halfbyte.quant
from halfbyte.errors import UnsupportedError
from halfbyte.quant import FORMATS, BlockFormat, by_id
from halfbyte.quant.formats import ACTIVATIONS, IDS, REMOVED

THEIRS = {kind.name.lower(): kind for kind in gguf.GGMLQuantizationType}


def test_every_format_in_the_folder_is_in_the_table_and_vice_versa():
    names = [module.name for module in pkgutil.iter_modules(halfbyte.quant.__path__)]
    modules = [importlib.import_module(f"halfbyte.quant.{name}") for name in names]
    found = {id(x): x for module in modules for x in vars(module).values() if isinstance(x, BlockFormat)}
    assert sorted(x.name for x in found.values()) == sorted(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_size_id_and_name_are_ggmls(name):
    format = FORMATS[name]
    assert format.name == name
    assert (format.block_len, format.block_bytes) == gguf.GGML_QUANT_SIZES[THEIRS[name]]
    assert format.ggml_id == THEIRS[name]
    assert by_id(format.ggml_id) is format


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_but_plain_numbers_has_planes(name):
    assert (FORMATS[name].planes is not None) == (FORMATS[name].block_len > 1)


def test_every_type_of_gguf_py_is_read_or_refused_by_name():
    assert set(THEIRS) == set(FORMATS) | set(ACTIVATIONS.values())
    assert {number: name for name, number in THEIRS.items()} == IDS | ACTIVATIONS


@pytest.mark.parametrize("number", REMOVED)
def test_removed_types_say_so(number):
    with pytest.raises(UnsupportedError, match=f"tensor type {number} .{REMOVED[number]}. was removed from ggml"):
        by_id(number)


@pytest.mark.parametrize("number", ACTIVATIONS)
def test_activation_types_say_so(number):
    with pytest.raises(UnsupportedError, match=f"{ACTIVATIONS[number]}. is for intermediate results"):
        by_id(number)


@pytest.mark.parametrize("number", [-1, 42, 99, 2**31, 2**63])
def test_unknown_types_name_the_known_ones(number):
    with pytest.raises(UnsupportedError, match=rf"tensor type {number} is unknown.*known: f32 \(0\).*q6_k \(14\)") as e:
        by_id(number)
    assert len(e.value.known) == len(FORMATS)


def test_unknown_name_gets_the_nearest_one():
    with pytest.raises(UnsupportedError, match="unknown block format 'q4k'; did you mean 'q4_k'"):
        FORMATS["q4k"]


def test_a_format_is_imported_only_when_asked_for():
    code = (
        "import sys; from halfbyte.quant import by_id; before = set(sys.modules); by_id(2);"
        "print(*before); print(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = (
        {name.rpartition(".")[2] for name in line.split() if name.startswith("halfbyte.quant.")}
        for line in done.stdout.splitlines()
    )
    assert before == {"block", "formats"}
    assert "q4_0" in after
    assert after.isdisjoint({*FORMATS, "grids"} - {"q4_0"})


def test_bits_per_weight_count_the_scales():
    assert FORMATS["q4_k"].bits_per_weight == 4.5
    assert FORMATS["iq1_s"].bits_per_weight == 1.5625
