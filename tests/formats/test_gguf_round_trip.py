"""What `GGUFWriter` writes, `open_gguf` reads: every value type, every inferred type, every tensor byte."""

from __future__ import annotations

import math
import string

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from halfbyte.errors import ConfigError
from halfbyte.formats import GGUFWriter, StringArray, Typed, open_gguf
from halfbyte.formats.value_type import NUMBERS
from halfbyte.quant.formats import FORMATS

ONE_FOLDER = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

texts = st.text(st.characters(codec="utf-8"), max_size=40) | st.binary(max_size=300).map(
    lambda raw: raw.decode("utf-8", "surrogateescape")
)
keys = st.text(string.ascii_lowercase + "._", min_size=1, max_size=30).filter(
    lambda key: key not in ("general.alignment", "split.count")  # the two that the reader itself acts upon
)


def scalar(kind: str) -> st.SearchStrategy[object]:
    if kind == "bool":
        return st.booleans()
    if kind in ("f32", "f64"):
        return st.floats(width=int(kind[1:]), allow_nan=False)
    limits = np.iinfo(NUMBERS[kind].dtype)
    return st.integers(int(limits.min), int(limits.max))


typed_scalars = st.sampled_from(list(NUMBERS)).flatmap(lambda kind: scalar(kind).map(lambda v: Typed(v, kind)))
typed_lists = st.sampled_from(list(NUMBERS)).flatmap(lambda kind: st.lists(scalar(kind)).map(lambda v: Typed(v, kind)))
typed_strings = (texts | st.lists(texts, max_size=30)).map(lambda v: Typed(v, "string"))
arrays = st.sampled_from(list(NUMBERS.values())).flatmap(lambda kind: hnp.arrays(kind.dtype, st.integers(0, 20)))


def plain(value: object) -> object:
    return value.tolist() if isinstance(value, np.ndarray | StringArray) else value


def write(path, metadata):
    with GGUFWriter(path, metadata):
        pass
    return open_gguf(path)


@ONE_FOLDER
@given(st.dictionaries(keys, typed_scalars | typed_lists | typed_strings, max_size=8))
def test_typed_values_come_back_with_value_and_type(tmp_path, metadata):
    with write(tmp_path / "m.gguf", metadata) as file:
        assert {key: plain(value) for key, value in file.metadata.items()} == {k: v.value for k, v in metadata.items()}
        assert dict(file.types) == {key: typed.type for key, typed in metadata.items()}


@ONE_FOLDER
@given(arrays)
def test_arrays_come_back_bit_for_bit_and_read_only(tmp_path, array):
    with write(tmp_path / "m.gguf", {"k": array}) as file:
        found = file.metadata["k"]
        assert found.dtype == array.dtype
        assert found.tobytes() == array.tobytes()
        assert found.flags.aligned
        assert not found.flags.writeable


@ONE_FOLDER
@given(st.dictionaries(keys, typed_scalars | typed_lists | typed_strings, max_size=8))
def test_what_was_read_is_written_back_byte_for_byte(tmp_path, metadata):
    with write(tmp_path / "a.gguf", metadata) as first:
        again = {key: Typed(value, first.types[key]) for key, value in first.metadata.items()}
        write(tmp_path / "b.gguf", again).close()
    assert (tmp_path / "a.gguf").read_bytes() == (tmp_path / "b.gguf").read_bytes()


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (0, "u32"),
        (2**32 - 1, "u32"),
        (-1, "i32"),
        (2**32, "i64"),
        (2**63, "u64"),
        (1.5, "f32"),
        (True, "bool"),
        ("x", "string"),
        (np.float64(0.1), "f64"),
        (np.uint16(3), "u16"),
        ([1, 2], "i32"),
        ([1, 2**31], "u32"),
        ([-1, 2**31], "i64"),
        ([0, 2**63], "u64"),
        ([1, 0.5], "f32"),
        ((True, False), "bool"),
        (["a", ""], "string"),
        (np.zeros(2, np.float16), "f32"),
        (np.zeros(2, ">i4"), "i32"),
    ],
    ids=str,
)
def test_types_are_inferred(tmp_path, value, kind):
    with write(tmp_path / "m.gguf", {"k": value}) as file:
        assert file.types["k"] == kind
        wanted = value.tolist() if isinstance(value, np.ndarray) else value
        assert plain(file.metadata["k"]) == (list(wanted) if isinstance(wanted, tuple) else wanted)


def test_nan_and_infinity_survive(tmp_path):
    with write(tmp_path / "m.gguf", {"nan": float("nan"), "inf": [math.inf, -math.inf]}) as file:
        assert math.isnan(file.metadata["nan"])
        assert file.metadata["inf"].tolist() == [math.inf, -math.inf]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Typed(256, "u8"), "range"),
        (Typed(-1, "u64"), "range"),
        (Typed([0, 2**31], "i32"), "range"),
        (Typed(1e300, "f32"), "range"),
        (Typed(1.5, "i32"), "not a i32"),
        (Typed(True, "u8"), "not a u8"),
        (Typed(1, "bool"), "not a bool"),
        (Typed(1, "string"), "not a string"),
        (Typed("x", "f32"), "not a f32"),
        (Typed(1, "u23"), "u32"),
        (2**64, "64-bit"),
        ([], "empty list"),
        ([1, "x"], "int, str"),
        ([[1]], "list"),
        (None, "NoneType"),
        (b"x", "bytes"),
        (np.zeros((2, 2)), "one dimension"),
        ("\ud800", "surrogate"),
    ],
    ids=str,
)
def test_values_without_a_type_are_refused_by_key(tmp_path, value, message):
    with pytest.raises(ConfigError, match=message) as caught:
        GGUFWriter(tmp_path / "m.gguf", {"some.key": value})
    assert "some.key" in str(caught.value)


@pytest.mark.parametrize("key", ["", "\udc80", "k" * 65536], ids=["empty", "not utf-8", "too long"])
def test_keys_no_reader_would_take_are_refused(tmp_path, key):
    with pytest.raises(ConfigError, match="metadata key"):
        GGUFWriter(tmp_path / "m.gguf", {key: 1})


@ONE_FOLDER
@given(data=st.data(), alignment=st.sampled_from([8, 32, 256, 4096]))
def test_tensors_written_in_any_order_and_in_pieces_come_back(tmp_path, data, alignment):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    formats = [FORMATS[name] for name in ("f32", "f16", "q8_0", "q4_0", "i8", "f64")]
    wanted, pieces = {}, []
    with GGUFWriter(tmp_path / "t.gguf", {}, alignment) as writer:
        for i in range(data.draw(st.integers(0, 6))):
            block = data.draw(st.sampled_from(formats))
            dims = data.draw(st.lists(st.integers(1, 4), min_size=0, max_size=3))
            shape = (block.block_len * data.draw(st.integers(1, 3)), *dims)
            rows = rng.integers(0, 256, (math.prod(dims), block.row_bytes(shape[0])), np.uint8)
            writer.declare(f"t{i}", block, shape)
            wanted[f"t{i}"] = (block, shape, rows)
            pieces += [f"t{i}"] * 3
        for name in data.draw(st.permutations(pieces)):
            flat, part = wanted[name][2].reshape(-1), pieces.count(name)
            pieces.remove(name)
            cut = -(-flat.size // 3)
            writer.write(name, flat[(3 - part) * cut : (4 - part) * cut])
    with open_gguf(tmp_path / "t.gguf") as file:
        assert file.alignment == alignment
        assert list(file.tensors) == list(wanted)
        for name, (block, shape, rows) in wanted.items():
            info = file.tensors[name]
            assert (info.format, info.shape, info.n_bytes, info.part) == (block, shape, rows.nbytes, 0)
            assert info.offset % alignment == 0
            assert np.array_equal(file.tensor_data(name), rows)
