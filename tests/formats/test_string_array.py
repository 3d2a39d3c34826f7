"""Strings found by guess and proof are those a plain walk finds, and decoding all equals decoding each."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfbyte.formats import StringArray
from halfbyte.formats import text_starts as module
from halfbyte.formats.cursor import Cursor
from halfbyte.formats.text_starts import find_text_starts

PREFIX = b"head"


def strings_in(texts: list[bytes], tail: bytes = b"") -> StringArray:
    packed = PREFIX + b"".join(struct.pack("<Q", len(text)) + text for text in texts)
    data = np.frombuffer(packed + tail, np.uint8)
    cursor = Cursor(Path("m.gguf"), data)
    cursor.skip(len(PREFIX), "prefix")
    array = StringArray(data, find_text_starts(cursor, len(texts), "key"))
    assert cursor.position == len(packed)
    return array


# Zeros, lengths over 255 and texts that look like lengths are what the guess can trip over.
tricky = st.sampled_from([b"", b"\0" * 7, b"\0" * 20, b"a" + b"\0" * 8 + b"b", b"x" * 255, b"y" * 256, b"z" * 3000])
texts = st.lists(st.binary(max_size=12) | tricky | st.text(max_size=8).map(str.encode), max_size=60)


@settings(deadline=None, max_examples=200)
@given(texts, st.binary(max_size=20))
def test_any_strings_are_found_and_decoded(texts, tail):
    array = strings_in(texts, tail)
    assert [array.raw(i) for i in range(len(array))] == texts
    decoded = [text.decode("utf-8", "surrogateescape") for text in texts]
    assert array.tolist() == decoded
    assert [array[i] for i in range(len(array))] == decoded
    assert [text.encode("utf-8", "surrogateescape") for text in array] == texts


@settings(deadline=None, max_examples=60)
@given(texts, st.integers(16, 200), st.integers(1, 9))
def test_runs_over_many_windows_are_found(texts, window, walk):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_WINDOW", window)
        patch.setattr(module, "_WALK", walk)
        array = strings_in(texts * 3)
    assert [array.raw(i) for i in range(len(array))] == texts * 3


def test_a_large_vocabulary_needs_no_walk(monkeypatch):
    vocabulary = [b"token%d" % i for i in range(60_000)]

    def walk(*args):
        raise AssertionError("walked")

    monkeypatch.setattr(module, "_walk", walk)
    monkeypatch.setattr(module, "_WALK", 0)
    assert strings_in(vocabulary).tolist() == [text.decode() for text in vocabulary]


def test_it_is_a_sequence():
    array = strings_in([b"a", b"bc", b"def"])
    assert (len(array), array[-1], array[1:], "bc" in array) == (3, "def", ["bc", "def"], True)
    assert list(array) == ["a", "bc", "def"]
    assert array.index("def") == 2
    assert array.raw(-3) == b"a"
    with pytest.raises(IndexError):
        array[3]
    with pytest.raises(IndexError):
        array.raw(-4)
