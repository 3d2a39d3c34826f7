"""Whatever is done to the bytes of a file, only a `HalfbyteError` ever escapes, and memory stays bounded."""

from __future__ import annotations

import random
import tracemalloc

import numpy as np
import pytest

from halfbyte.errors import FormatError, HalfbyteError
from halfbyte.formats import GGUFFile, GGUFWriter, StringArray, open_gguf
from halfbyte.quant.formats import FORMATS
from tests.formats.raw_gguf import RawGGUF, sound_file

RAW, WHOLE = sound_file()
HOSTILE = [0, -1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**63, 2**64 - 1]
MEMORY = 1 << 20


def read_all(file: GGUFFile) -> None:
    """Touch everything a reader can touch."""
    for value in file.metadata.values():
        if isinstance(value, StringArray):
            assert [value.raw(i).decode("utf-8", "surrogateescape") for i in range(len(value))] == value.tolist()
        elif isinstance(value, np.ndarray):
            value.tolist()
    for name, info in file.tensors.items():
        data = file.tensor_data(name)
        assert data.shape == (info.rows, info.format.row_bytes(info.columns))
        data.sum()


def outcome(path, content: bytes) -> str:
    """ "read" or the message of the error; anything but a `HalfbyteError` fails the test by itself."""
    path.write_bytes(content)
    try:
        with open_gguf(path) as file:
            read_all(file)
    except HalfbyteError as error:
        message = str(error)
    else:
        return "read"
    assert str(path) in message
    return message


def test_the_file_that_is_damaged_below_is_sound(tmp_path):
    assert outcome(tmp_path / "m.gguf", WHOLE) == "read"
    with open_gguf(tmp_path / "m.gguf") as file:
        assert file.metadata["tokenizer.ggml.tokens"].tolist() == ["a", "", "café"]
        assert file.tensors["head.weight"].shape == (32, 3)


def test_cut_at_every_byte(tmp_path):
    for length in range(len(WHOLE)):
        assert outcome(tmp_path / "m.gguf", WHOLE[:length]) != "read", length


def test_a_longer_header_cut_at_every_97th_byte(tmp_path):
    path = tmp_path / "whole.gguf"
    metadata = {"tokenizer.ggml.tokens": [f"token {i}" for i in range(400)], "scores": np.zeros(400, np.float32)}
    with GGUFWriter(path, metadata) as writer:
        for i in range(60):
            writer.declare(f"blk.{i}.weight", FORMATS["f32"], (8, 2))
        for i in range(60):
            writer.write(f"blk.{i}.weight", bytes(64))
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        assert outcome(tmp_path / "m.gguf", whole[:length]) != "read", length


@pytest.mark.parametrize("where", RAW.fields, ids=lambda where: f"{where.name}@{where.offset}")
def test_every_number_set_to_hostile_values(tmp_path, where):
    for value in HOSTILE:
        tracemalloc.start()
        outcome(tmp_path / "m.gguf", RAW.patched(where, value, WHOLE))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < MEMORY, value


COUNTS = ("n_tensors", "n_keys", "length", "element count", "n_dims", "dimension", "tensor offset")


@pytest.mark.parametrize(
    "where", [f for f in RAW.fields if any(word in f.name for word in COUNTS)], ids=lambda f: f"{f.name}@{f.offset}"
)
@pytest.mark.parametrize("value", [-1, 2**31, 2**63])
def test_counts_beyond_the_file_are_refused(tmp_path, where, value):
    if where.code == "I" and value == 2**63:
        value = 2**30
    assert outcome(tmp_path / "m.gguf", RAW.patched(where, value, WHOLE)) != "read"


def test_random_bytes_flipped(tmp_path):
    rng = random.Random(1)
    path = tmp_path / "m.gguf"
    refused = 0
    for _ in range(2500):
        damaged = bytearray(WHOLE)
        for _ in range(rng.choice((1, 1, 2, 8))):
            damaged[rng.randrange(len(WHOLE))] = rng.randrange(256)
        refused += outcome(path, bytes(damaged)) != "read"
    assert refused > 1000


def test_random_bytes_removed_or_doubled(tmp_path):
    rng = random.Random(2)
    for _ in range(500):
        at, length = rng.randrange(len(WHOLE)), rng.randrange(1, 40)
        again = WHOLE[at : at + length] * rng.choice((0, 2))
        outcome(tmp_path / "m.gguf", WHOLE[:at] + again + WHOLE[at + length :])


def test_a_huge_count_fails_before_anything_is_allocated(tmp_path):
    path = tmp_path / "m.gguf"
    tail = bytes(1 << 16)
    promises = {
        "strings": bytes(RawGGUF().head(0, 1).array(b"k", 8, 2**40).data),
        "numbers": bytes(RawGGUF().head(0, 1).array(b"k", 5, 2**40).data),
        "string": bytes(RawGGUF().head(0, 1).key(b"k", 8).number("length", "Q", 2**40).data),
        "keys": bytes(RawGGUF().head(0, 2**40).data),
        "tensors": bytes(RawGGUF().head(2**40, 0).data),
    }
    for name, head in promises.items():
        path.write_bytes(head + tail)
        tracemalloc.start()
        with pytest.raises(FormatError, match=str(2**40)):
            open_gguf(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1 << 16, name


def test_opening_allocates_for_offsets_only_not_for_text(tmp_path):
    path = tmp_path / "m.gguf"
    tokens = ["x" * 200] * 20_000
    with GGUFWriter(path, {"tokens": tokens}):
        pass
    tracemalloc.start()
    file = open_gguf(path)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert file.metadata["tokens"].raw(19_999) == b"x" * 200
    assert kept < 8 * 20_000 + 50_000
    assert peak < kept + 2_000_000
