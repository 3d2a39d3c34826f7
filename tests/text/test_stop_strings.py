from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfbyte.errors import ConfigError
from halfbyte.text import StopStrings


@given(st.lists(st.text("ab", max_size=4), max_size=8), st.lists(st.text("ab", min_size=1, max_size=4), max_size=3))
def test_the_stream_ends_before_the_first_stop_string(pieces: list[str], stops: list[str]) -> None:
    whole = "".join(pieces)
    ends = [at for stop in stops if (at := whole.find(stop)) >= 0]
    watcher = StopStrings(stops)
    shown = ""
    for piece in pieces:
        text, stopped = watcher.push(piece)
        shown += text
        if stopped:
            # A later piece may have completed a longer stop string that began earlier; what is certain now counts.
            assert whole[len(shown) :].startswith(tuple(stops))
            return
    assert not ends
    assert shown + watcher.finish() == whole


def test_text_that_cannot_become_a_stop_string_is_not_held_back() -> None:
    watcher = StopStrings(["\n\n", "END"])
    assert watcher.push("one\n") == ("one", False)
    assert watcher.push("two E") == ("\ntwo ", False)
    assert watcher.push("N") == ("", False)
    assert watcher.push("T\n") == ("ENT", False)
    assert watcher.push("\nmore") == ("", True)


def test_a_single_string_is_one_stop_string_and_empty_ones_are_refused() -> None:
    assert StopStrings("END").push("the END.") == ("the ", True)
    with pytest.raises(ConfigError, match="stop wants strings"):
        StopStrings(["a", ""])
