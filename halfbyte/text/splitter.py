"""`Splitter`: finds the texts of special tokens inside a text."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .word_chars import is_white, is_word

_PREFIX = 2


@dataclass(frozen=True)
class Edges:
    """How a special token meets its neighbours: it may take the white space beside it, or want no word there."""

    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False


class Splitter:
    """Cuts a text at the leftmost, and there longest, special token.

    A regular expression of thousands of alternatives is slow to build and to fail. So one character class per first
    character finds candidates by their first two, and a table of lengths per candidate settles the rest.
    """

    def __init__(
        self, ids: Mapping[str, int], control: Mapping[str, int], edges: Mapping[str, Edges] | None = None
    ) -> None:
        """`ids` by text: those that always count as tokens, and those that `literal` can keep from it.

        `edges` of the tokens, by text, that have some.
        """
        self._ids = {**ids, **control}
        self._control = control
        self._edges = edges or {}
        lengths: dict[str, set[int]] = defaultdict(set)
        for text in self._ids:
            lengths[text[:_PREFIX]].add(len(text))
        self._lengths = {prefix: sorted(found, reverse=True) for prefix, found in lengths.items()}
        self._candidate = _candidate_pattern(self._lengths)

    def split(self, text: str, literal: Sequence[int] = ()) -> Iterator[str | int]:
        """Stretches of plain text, and ids of the special tokens between them, in order.

        `literal` holds ascending positions of characters that are no part of a control token, whatever they spell.
        """
        for _, part in self.cut(text, literal):
            yield part

    def cut(self, text: str, literal: Sequence[int] = ()) -> Iterator[tuple[int, str | int]]:
        """The same, each with the place where it begins."""
        done = at = 0
        while self._candidate is not None and (candidate := self._candidate.search(text, at)):
            start = candidate.start()
            end = self._match(text, start, literal)
            if end is None:
                at = start + 1
                continue
            at = end
            token = text[start:end]
            if token in self._edges:
                edges = self._edges[token]
                if edges.single_word and _touches_a_word(text, start, end):
                    continue
                start, end = _widen(text, start, end, edges, done)
            if done < start:
                yield done, text[done:start]
            yield start, self._ids[token]
            done = end
        if done < len(text):
            yield done, text[done:]

    def _match(self, text: str, start: int, literal: Sequence[int]) -> int | None:
        following = bisect_left(literal, start)
        stop = literal[following] if following < len(literal) else len(text)
        # A one-character token has a prefix of its own, shorter than that of the longer ones at the same place.
        for width in range(_PREFIX, 0, -1):
            for length in self._lengths.get(text[start : start + width], ()):
                found = text[start : start + length]
                if found in self._ids and (start + length <= stop or found not in self._control):
                    return start + length
        return None


def _touches_a_word(text: str, start: int, end: int) -> bool:
    return (start > 0 and is_word(text[start - 1])) or (end < len(text) and is_word(text[end]))


def _widen(text: str, start: int, end: int, edges: Edges, done: int) -> tuple[int, int]:
    while edges.lstrip and start > done and is_white(text[start - 1]):
        start -= 1
    while edges.rstrip and end < len(text) and is_white(text[end]):
        end += 1
    return start, end


def _candidate_pattern(prefixes: Mapping[str, object]) -> re.Pattern[str] | None:
    followers: dict[str, set[str]] = defaultdict(set)
    for prefix in prefixes:
        followers[prefix[0]].add(prefix[1:])
    branches = []
    for first, seconds in followers.items():
        classes = "" if "" in seconds else "[" + "".join(map(re.escape, sorted(seconds))) + "]"
        branches.append(re.escape(first) + classes)
    return re.compile("|".join(branches)) if branches else None
