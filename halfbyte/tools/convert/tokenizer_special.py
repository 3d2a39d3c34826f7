"""`special_ids`: which token begins a text, which ends an answer, and so on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import FormatError
from .tokenizer_files import TokenizerFiles

_TEXT_FILES = ("tokenizer_config.json", "special_tokens_map.json")
_ID_FILES = ("generation_config.json", "config.json")


@dataclass(frozen=True)
class SpecialIds:
    """`ends`: all ids that end an answer, the tokenizer's own first."""

    bos: int | None
    pad: int | None
    sep: int | None
    cls: int | None
    mask: int | None
    ends: tuple[int, ...]


def special_ids(files: TokenizerFiles, ids: Mapping[str, int], n_vocab: int) -> SpecialIds:
    """By text where a file says so, else by number. Raises `FormatError` for numbers outside the vocabulary."""
    named = {name: _by_text(files, name, ids) for name in ("bos", "eos", "pad", "sep", "cls", "mask")}
    numbers = {name: _by_number(files, name, n_vocab) for name in ("bos", "eos", "pad")}
    ends = [named["eos"]] if named["eos"] is not None else []
    return SpecialIds(
        bos=_first(named["bos"], numbers["bos"]),
        pad=_first(named["pad"], numbers["pad"]),
        sep=named["sep"],
        cls=named["cls"],
        mask=named["mask"],
        ends=tuple(dict.fromkeys(ends + numbers["eos"])),
    )


def _first(named: int | None, numbers: list[int]) -> int | None:
    return named if named is not None or not numbers else numbers[0]


def _by_text(files: TokenizerFiles, name: str, ids: Mapping[str, int]) -> int | None:
    for file in _TEXT_FILES:
        given: Any = files.tree(file).get(f"{name}_token")
        text = given.get("content") if isinstance(given, dict) else given
        if isinstance(text, str):
            return ids.get(text)
    return None


def _by_number(files: TokenizerFiles, name: str, n_vocab: int) -> list[int]:
    """Ids of the first file that has some, those of generation before those of the model."""
    for file in _ID_FILES:
        key, tree = f"{name}_token_id", files.tree(file)
        # Models that see too keep those of their language model apart.
        inner = tree.get("text_config") or {}
        given: Any = tree[key] if tree.get(key) is not None else inner.get(key)
        numbers = given if isinstance(given, list) else [given]
        found = [i for i in numbers if isinstance(i, int) and not isinstance(i, bool) and i >= 0]
        if found and max(found) >= n_vocab:
            raise FormatError(
                f"{name}_token_id is {max(found)}, and the model has ids 0 to {n_vocab - 1}", path=files.folder / file
            )
        if found:
            return found
    return []
