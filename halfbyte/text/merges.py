"""Merges of a BPE: from the lines of a file to the library's model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from tokenizers.models import BPE

from ..errors import FormatError
from .vocabulary import KEY

_SHOWN = 3
_SPACE, _NEWLINE = b" \n"


def build_bpe(plain: dict[str, int], known: Mapping[str, int], pairs: list[tuple[str, str]], **options: Any) -> BPE:
    """The model of the `plain` tokens; merges of tokens that are `known` but not plain are left out.

    Raises `FormatError` for merges that name unknown tokens.
    """
    try:
        return BPE(plain, pairs, **options)
    except Exception:
        # The Rust side names one bad merge at most; the slow look here names the first few, or lets them pass.
        _check_merges(known, pairs)
    # A token that is no UTF-8 can be no text, and the Rust side takes text only.
    plain = {token: i for token, i in plain.items() if token.isascii() or _is_text(token)}
    sound = [(a, b) for a, b in pairs if a in plain and b in plain and a + b in plain]
    return BPE(plain, sound, **options)


def split_merges(merges: list[str]) -> list[tuple[str, str]]:
    """Both halves of each; raises `FormatError` where there are not two."""
    joined = "\n".join(merges)
    marks = np.frombuffer(joined.encode("utf-8", "surrogateescape"), np.uint8)
    marks = marks[(marks == _SPACE) | (marks == _NEWLINE)]
    if len(marks) != max(0, 2 * len(merges) - 1) or (marks[::2] != _SPACE).any() or (marks[1::2] != _NEWLINE).any():
        wrong = [merge for merge in merges if merge.count(" ") != 1 or "\n" in merge]
        shown = ", ".join(map(repr, wrong[:_SHOWN]))
        raise FormatError(f"{KEY}merges: {len(wrong)} are not two tokens with one space between, as {shown}")
    words = iter(joined.replace("\n", " ").split(" ") if merges else [])
    return list(zip(words, words, strict=True))


def _check_merges(known: Mapping[str, int], pairs: list[tuple[str, str]]) -> None:
    unknown = [f"{a} {b}" for a, b in pairs if a not in known or b not in known or a + b not in known]
    if unknown:
        shown = ", ".join(map(repr, unknown[:_SHOWN]))
        raise FormatError(f"{KEY}merges: {len(unknown)} name tokens that are not in {KEY}tokens, as {shown}")


def _is_text(token: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in token)
