"""Runs of tokens are found again, in constant time and bounded memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfbyte.runtime.speculation import ngram_index
from halfbyte.runtime.speculation.ngram_index import LENGTHS, TAIL, NgramIndex


def push(index, ids, end):
    return index.push(ids[max(end - TAIL, 0) : end].tobytes(), end)


def searched(ids, end):
    """What `push` must find, by looking everywhere."""
    for length in LENGTHS:
        places = [p for p in range(length, end) if ids[p - length : p].tolist() == ids[end - length : end].tolist()]
        if end >= length and places:
            return places[-1], length
    return 0, 0


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.integers(0, 60))
def test_finds_the_latest_place_of_the_longest_run(tokens, known):
    ids = np.array(tokens, np.int32)
    known = min(known, len(ids))
    index = NgramIndex(ids[:known])
    for end in range(known + 1, len(ids) + 1):
        assert push(index, ids, end) == searched(ids, end)


@pytest.mark.parametrize("token", [0, 255, 256, 2**31 - 1])
def test_any_token_can_be_part_of_a_run(token):
    ids = np.array([token, token, 5, token, token], np.int32)
    assert push(NgramIndex(ids[:4]), ids, 5) == (2, 2)


def test_memory_is_bounded_and_what_is_recent_stays_known(monkeypatch):
    monkeypatch.setattr(ngram_index, "MOST_RUNS", 16)
    ids = np.arange(400, dtype=np.int32)
    index = NgramIndex(ids[:100])
    for end in range(101, 401):
        push(index, ids, end)
        assert sum(len(table) for table in (*index._latest, *index._older)) <= 3 * 2 * 16
    again = np.concatenate([ids, ids[384:392]])
    assert [push(index, again, end) for end in range(401, 409)][-1] == (392, 8)


def test_of_a_very_long_prompt_the_end_is_known(monkeypatch):
    monkeypatch.setattr(ngram_index, "MOST_RUNS", 16)
    ids = np.concatenate([np.arange(100), [1, 2, 95, 96]]).astype(np.int32)
    index = NgramIndex(ids[:101])
    assert [push(index, ids, end) for end in (102, 103, 104)] == [(0, 0), (0, 0), (97, 2)]
