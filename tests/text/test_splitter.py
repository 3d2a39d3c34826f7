from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from halfbyte.text.splitter import Splitter

IDS = {"<a>": 1, "<a>b": 2, "\n": 3, "\n\n": 4, "[x]": 5, "<": 6, "^-]": 7}
TOKENS = Splitter(IDS, {})


def slow_split(text: str) -> list[str | int]:
    """Leftmost, there longest, one place after the other."""
    parts: list[str | int] = []
    plain = ""
    while text:
        found = max((token for token in IDS if text.startswith(token)), key=len, default=None)
        if found is None:
            plain, text = plain + text[0], text[1:]
            continue
        parts += [plain, IDS[found]] if plain else [IDS[found]]
        plain, text = "", text[len(found) :]
    return [*parts, plain] if plain else parts


@given(st.text("<a>b\n[x]^- z", max_size=30))
def test_the_split_is_leftmost_and_there_longest(text: str) -> None:
    assert list(TOKENS.split(text)) == slow_split(text)


def test_nothing_to_find_leaves_the_text_whole() -> None:
    assert list(Splitter({}, {}).split("a<b")) == ["a<b"]
    assert list(Splitter({}, {}).split("")) == []


def test_only_control_tokens_are_kept_from_literal_places() -> None:
    splitter = Splitter({"<u>": 1}, {"<c>": 2, "<c": 3})
    assert list(splitter.split("<u><c>", literal=[0, 3])) == [1, "<c>"]
    assert list(splitter.split("<u><c>", literal=[1, 5])) == [1, 3, ">"]
    assert list(splitter.split("<c><c>", literal=[0])) == ["<c>", 2]
