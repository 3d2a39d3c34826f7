"""How a text is cut, at the edges too."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.errors import ConfigError
from halfbyte.tools.quality.windows import Windows


def cut(count, length, **choices):
    return Windows(np.arange(count, dtype=np.int32), length, **choices)


@pytest.mark.parametrize(("count", "whole"), [(8, 1), (15, 1), (16, 2), (17, 2), (80, 10)])
def test_what_fills_no_window_is_left_out(count, whole):
    found = list(cut(count, 8))
    assert len(cut(count, 8)) == len(found) == whole
    assert np.array_equal(np.concatenate(found), np.arange(8 * whole))


@pytest.mark.parametrize(("length", "first", "scored"), [(8, 4, 3), (9, 4, 4), (256, 128, 127), (512, 256, 255)])
def test_the_second_half_is_scored(length, first, scored):
    windows = cut(length, length)
    assert (windows.first, windows.scored) == (first, scored)


def test_every_window_begins_with_the_begin_token_and_the_text_keeps_its_own():
    windows = cut(24, 8, bos_id=99)
    assert [ids.tolist() for ids in windows] == [[99, *range(8 * i + 1, 8 * i + 8)] for i in range(3)]
    assert np.array_equal(windows.ids, np.arange(24))


def test_only_the_first_windows_are_taken_where_asked_for():
    assert [ids[0] for ids in cut(80, 8, most=3)] == [0, 8, 16]
    assert len(cut(16, 8, most=3)) == 2


def test_a_short_text_is_refused_with_its_length():
    with pytest.raises(ConfigError, match=r"31 tokens, fewer than one window of 32: .*smaller window, at most 31"):
        cut(31, 32)
    with pytest.raises(ConfigError, match=r"7 tokens, fewer than one window of 32: give a longer text$"):
        cut(7, 32)


def test_a_window_too_short_to_score_is_refused():
    with pytest.raises(ConfigError, match="8 tokens or more, not 7"):
        cut(80, 7)
