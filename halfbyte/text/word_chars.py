"""What counts as white space and as a part of a word beside a special token: Unicode's sets, which are not Python's."""

from __future__ import annotations

from functools import lru_cache

_WHITE = frozenset("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | {chr(i) for i in range(0x2000, 0x200B)}


def is_white(char: str) -> bool:
    """Whether the character has the property White_Space; Python adds four separators to these."""
    return char in _WHITE


@lru_cache(maxsize=4096)
def is_word(char: str) -> bool:
    r"""Whether `\w` of the tokenizers library takes the character: letters, marks, digits, joiners and connectors."""
    from tokenizers.pre_tokenizers import Whitespace

    # Of a character and a letter it makes one piece only if both are parts of words.
    pieces = Whitespace().pre_tokenize_str(char + "a")
    return bool(pieces[0][0] == char + "a")
