"""Importance matrices on disk: what is written is read, and files that lie are refused by name."""

import struct

import numpy as np
import pytest

from halfbyte.errors import ConfigError, FormatError
from halfbyte.formats import GGUFWriter, Typed, open_gguf
from halfbyte.quant import FORMATS
from halfbyte.tools.quantize.imatrix import ImportanceMatrix
from halfbyte.tools.quantize.imatrix_entry import Entry
from halfbyte.tools.quantize.imatrix_file import read_imatrix, write_imatrix
from tests.model.tiny import make_tiny_gguf


def floats(*values):
    return np.array(values, np.float32)


MATRIX = ImportanceMatrix(
    {
        "blk.0.attn_q.weight": Entry(floats([1, 2, 3]), floats(4)),
        "blk.0.ffn_up_exps.weight": Entry(floats([1, 2], [0, 0], [5, 6]), floats(7, 0, 9)),
    },
    ("a.txt", "b.txt"),
    11,
    256,
)


def same(a, b):
    assert (a.datasets, a.chunk_count, a.chunk_size) == (b.datasets, b.chunk_count, b.chunk_size)
    assert a.entries.keys() == b.entries.keys()
    for name, entry in a.entries.items():
        assert np.array_equal(entry.in_sum2, b.entries[name].in_sum2)
        assert np.array_equal(entry.counts, b.entries[name].counts)


def test_what_is_written_is_read(tmp_path):
    write_imatrix(MATRIX, tmp_path / "i.gguf")
    found = read_imatrix(tmp_path / "i.gguf")
    same(found, MATRIX)
    assert found.path == tmp_path / "i.gguf"


def test_the_file_is_as_other_programs_write_it(tmp_path):
    write_imatrix(MATRIX, tmp_path / "i.gguf")
    with open_gguf(tmp_path / "i.gguf") as file:
        assert dict(file.types) == {
            "general.type": "string",
            "imatrix.datasets": "string",
            "imatrix.chunk_count": "u32",
            "imatrix.chunk_size": "u32",
        }
        assert file.metadata["general.type"] == "imatrix"
        assert file.metadata["imatrix.datasets"].tolist() == ["a.txt", "b.txt"]
        assert {name: (info.format.name, info.shape) for name, info in file.tensors.items()} == {
            "blk.0.attn_q.weight.in_sum2": ("f32", (3,)),
            "blk.0.attn_q.weight.counts": ("f32", (1,)),
            "blk.0.ffn_up_exps.weight.in_sum2": ("f32", (2, 3)),
            "blk.0.ffn_up_exps.weight.counts": ("f32", (1, 3)),
        }


def test_without_texts_a_file_is_written_and_read(tmp_path):
    bare = ImportanceMatrix(MATRIX.entries, (), 0, 512)
    write_imatrix(bare, tmp_path / "i.gguf")
    same(read_imatrix(tmp_path / "i.gguf"), bare)


def make(path, tensors, kind="imatrix", **pairs):
    metadata = {} if kind is None else {"general.type": kind}
    with GGUFWriter(path, metadata | {key.replace("__", "."): value for key, value in pairs.items()}) as writer:
        arrays = {name: np.asarray(values) for name, values in tensors.items()}
        for name, array in arrays.items():
            writer.declare(name, FORMATS["f16" if array.dtype == np.float16 else "f32"], array.shape[::-1])
        for name, array in arrays.items():
            writer.write(name, array if array.dtype == np.float16 else array.astype(np.float32))
    return path


def test_what_other_programs_add_is_passed_over(tmp_path):
    tensors = {"a.in_sum2": [4, 6], "a.counts": [2], "a.in_sum": [1, 1], "a.stats": [np.nan, 1, 2]}
    assert read_imatrix(make(tmp_path / "i.gguf", tensors)).importance("a").tolist() == [[2, 3]]
    assert read_imatrix(make(tmp_path / "j.gguf", tensors, kind=None)).importance("a").tolist() == [[2, 3]]


PAIR = {"a.in_sum2": [4, 6], "a.counts": [2]}


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"a.in_sum2": [4, 6]}, "'a' has sums and no counts"),
        ({"a.counts": [4]}, "'a' has counts and no sums"),
        ({"a.in_sum2": [4, -6], "a.counts": [2]}, "'a' has negative sums"),
        ({"a.in_sum2": [4, np.nan], "a.counts": [2]}, "'a' has sums that are no numbers"),
        ({"a.in_sum2": [4, np.inf], "a.counts": [2]}, "'a' has sums that are no numbers"),
        ({"a.in_sum2": [4, 6], "a.counts": [-2]}, "'a' has negative counts"),
        ({"a.in_sum2": [4, 6], "a.counts": [np.nan]}, "'a' has counts that are no numbers"),
        ({"a.in_sum2": [4, 6, 8], "a.counts": [2, 2]}, "'a' has 3 sums for 2 experts"),
        ({"a.in_sum2": [4], "a.counts": [2, 2]}, "'a' has 1 sums for 2 experts"),
        ({"a.in_sum2": np.float16([4]), "a.counts": [2]}, "'a' is f16 and f32, not f32"),
        ({"b.weight": [4]}, "is no importance matrix: .* it has no entries"),
        ({}, "is no importance matrix: .* it has no entries"),
    ],
)
def test_entries_that_make_no_sense_are_refused_by_name(tmp_path, tensors, message):
    with pytest.raises(FormatError, match=message) as refused:
        read_imatrix(make(tmp_path / "i.gguf", tensors))
    assert refused.value.path == str(tmp_path / "i.gguf")


def test_every_problem_is_reported_at_once(tmp_path):
    with pytest.raises(FormatError, match="'a' has sums and no counts; 'b' has negative sums"):
        read_imatrix(make(tmp_path / "i.gguf", {"a.in_sum2": [4], "b.in_sum2": [-1], "b.counts": [1]}))


@pytest.mark.parametrize("value", [Typed(-1, "i32"), "many", True, 1.5])
def test_a_chunk_count_that_is_no_count_is_refused(tmp_path, value):
    with pytest.raises(FormatError, match=r"imatrix\.chunk_count is .* not a count"):
        read_imatrix(make(tmp_path / "i.gguf", PAIR, imatrix__chunk_count=value))


def test_files_of_another_kind_are_refused(tmp_path):
    with pytest.raises(FormatError, match="this is a model; make one with halfbyte imatrix"):
        read_imatrix(make_tiny_gguf(tmp_path / "m.gguf"))
    with pytest.raises(FormatError, match=r"general\.type is 'adapter'"):
        read_imatrix(make(tmp_path / "a.gguf", PAIR, kind="adapter"))
    (tmp_path / "empty.dat").write_bytes(b"")
    with pytest.raises(FormatError, match="the file is empty"):
        read_imatrix(tmp_path / "empty.dat")
    with pytest.raises(ConfigError, match="no such file"):
        read_imatrix(tmp_path / "missing.gguf")
    with pytest.raises(ConfigError, match="is a folder"):
        read_imatrix(tmp_path)


def legacy(entries, trailer=b"", count=None):
    """The bytes of an older file; an entry is (name, calls, values)."""
    out = struct.pack("<i", len(entries) if count is None else count)
    for name, calls, values in entries:
        out += struct.pack("<i", len(name)) + name + struct.pack("<ii", calls, len(values))
        out += np.float32(values).tobytes()
    return out + trailer


ENTRIES = [(b"blk.0.a.weight", 2, [2, 4]), (b"b", 0, [3])]
TRAILER = struct.pack("<ii", 7, 5) + b"x.txt"


def read_bytes(tmp_path, data):
    (tmp_path / "i.dat").write_bytes(data)
    return read_imatrix(tmp_path / "i.dat")


def test_the_older_form_is_read(tmp_path):
    found = read_bytes(tmp_path, legacy(ENTRIES, TRAILER))
    assert (found.datasets, found.chunk_count, found.chunk_size) == (("x.txt",), 7, 0)
    assert found.importance("blk.0.a.weight").tolist() == [[1, 2]]
    assert found.importance("b").tolist() == [[1]]
    assert read_bytes(tmp_path, legacy(ENTRIES)).datasets == ()


def test_the_older_form_is_written_as_the_newer(tmp_path):
    older = read_bytes(tmp_path, legacy(ENTRIES, TRAILER))
    write_imatrix(older, tmp_path / "i.gguf")
    found = read_imatrix(tmp_path / "i.gguf")
    assert (found.chunk_count, found.chunk_size, found.entries["blk.0.a.weight"].counts[0]) == (7, 512, 1024)
    assert np.array_equal(found.importance("blk.0.a.weight"), older.importance("blk.0.a.weight"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (legacy([], count=0), "the number of entries is 0"),
        (legacy([], count=-1), "the number of entries is -1"),
        (legacy([], count=1 << 30), "the length of the name of entry 0 needs 4 bytes but 0 are left"),
        (struct.pack("<ii", 1, -5), "the length of the name of entry 0 is -5"),
        (struct.pack("<ii", 1, 0), "the length of the name of entry 0 is 0"),
        (struct.pack("<ii", 1, 1 << 30), "the name of entry 0 is 1073741824 bytes long"),
        (legacy([(b"a", -1, [1])]), "the calls of 'a' is -1"),
        (legacy([(b"a", 1, [])]), "the number of values of 'a' is 0"),
        (struct.pack("<ii1sii", 1, 1, b"a", 1, 1 << 30), "the values of 'a' needs 4294967296 bytes but 0 are left"),
        (legacy([(b"a", 1, [1, -1])]), "'a' has negative sums"),
        (legacy([(b"a", 1, [np.nan])]), "'a' has sums that are no numbers"),
        (legacy([(b"a", 1, [1]), (b"a", 1, [1])]), "'a' occurs twice"),
        (legacy(ENTRIES, struct.pack("<i", -7)), "the number of chunks is -7"),
        (b"the quick brown fox jumps over the lazy dog", "the name of entry 0 is .* bytes long"),
    ],
)
def test_an_older_file_that_lies_is_refused_with_the_place(tmp_path, data, message):
    with pytest.raises(FormatError, match=message) as refused:
        read_bytes(tmp_path, data)
    assert refused.value.offset is not None


def test_an_older_file_cut_anywhere_is_refused_or_lacks_its_end_alone(tmp_path):
    data = legacy(ENTRIES, TRAILER)
    whole = len(legacy(ENTRIES))
    for length in range(1, len(data)):
        if length in (whole, whole + 4):
            assert len(read_bytes(tmp_path, data[:length]).entries) == 2
        else:
            with pytest.raises(FormatError):
                read_bytes(tmp_path, data[:length])
