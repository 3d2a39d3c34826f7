"""`GoldenVectors`: all that a file says about its own answers, and how it says it.

Keys begin with `halfbyte.check.`; each is an array of numbers or of texts, since other programs have to skip it.

| key | holds |
|---|---|
| `version` | u32, 1 |
| `texts`, `text_lengths`, `text_ids` | texts, number of ids of each (-1: not recorded), all ids and -1 behind them |
| `layout`, `tensors` | see `sums.py`; `layout` tells whether the vectors are of these tensors at all |
| `prompt` | ids of a short prompt, -1 behind the last |
| `columns`, `sample`, `best`, `margin`, `mean`, `rms` | see `Rows`: a row for each token of the prompt |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError
from ...formats import GGUFFile, Reserved, StringArray, Typed
from ...formats.value_type import NUMBERS
from .rows import COLUMNS, Ints, Rows
from .texts import TEXTS

PREFIX = "halfbyte.check."
VERSION = 1
PROMPT_TOKENS = 12
"""Enough that positions differ and that a token looks at many others."""
TEXT_IDS = 1024
"""Room for all ids; no tokenizer needs more than one for each byte."""

_ARRAYS = {
    "text_lengths": ("i32", len(TEXTS)),
    "text_ids": ("i32", TEXT_IDS),
    "layout": ("u32", 1),
    "prompt": ("i32", PROMPT_TOKENS),
    "columns": ("i32", COLUMNS),
    "sample": ("f32", PROMPT_TOKENS * COLUMNS),
    "best": ("i32", PROMPT_TOKENS),
    "margin": ("f32", PROMPT_TOKENS),
    "mean": ("f32", PROMPT_TOKENS),
    "rms": ("f32", PROMPT_TOKENS),
}
_TYPES = {name: kind for name, (kind, _) in _ARRAYS.items()} | {"tensors": "u32"}
_PER_ROW = ("best", "margin", "mean", "rms")


@dataclass(frozen=True)
class GoldenVectors:
    """`ids` has those of each text, None where there is no tokenizer; `tensors` u32[n] by name, in order."""

    texts: tuple[str, ...]
    ids: tuple[Ints | None, ...]
    layout: int
    tensors: NDArray[np.uint32]
    prompt: Ints
    rows: Rows

    def values(self) -> dict[str, NDArray[Any]]:
        """What belongs in the arrays that `room` reserves, by key."""
        lengths = [-1 if ids is None else len(ids) for ids in self.ids]
        known = [ids for ids in self.ids if ids is not None]
        arrays: dict[str, NDArray[Any]] = {
            "text_lengths": np.array(lengths, np.int32),
            "text_ids": np.concatenate([*known, np.empty(0, np.int32)]),
            "layout": np.array([self.layout], np.uint32),
            "prompt": self.prompt,
            **{name: getattr(self.rows, name).reshape(-1) for name in ("columns", "sample", *_PER_ROW)},
        }
        padded = {PREFIX + name: _pad(array, _ARRAYS[name][1]) for name, array in arrays.items()}
        return padded | {f"{PREFIX}tensors": self.tensors}


def room(n_tensors: int) -> dict[str, object]:
    """Metadata of a file that will have golden vectors once it has its tensors."""
    reserved = {PREFIX + name: Reserved(kind, count) for name, (kind, count) in _ARRAYS.items()}
    return {
        f"{PREFIX}version": Typed(VERSION, "u32"),
        f"{PREFIX}texts": list(TEXTS),
        **reserved,
        f"{PREFIX}tensors": Reserved("u32", n_tensors),
    }


def blank(n_tensors: int) -> dict[str, NDArray[Any]]:
    """Values for a file whose golden vectors could not be computed."""
    arrays = {name: _pad(np.empty(0, NUMBERS[kind].dtype), count) for name, (kind, count) in _ARRAYS.items()}
    arrays["tensors"] = np.zeros(n_tensors, np.uint32)
    return {PREFIX + name: array for name, array in arrays.items()}


def without(metadata: Mapping[str, object]) -> dict[str, object]:
    """Metadata without golden vectors, which are of one file alone."""
    return {key: value for key, value in metadata.items() if not key.startswith(PREFIX)}


def read(file: GGUFFile) -> GoldenVectors | None:
    """The golden vectors of a file; None where it has none, blank ones, or those of a later version.

    Raises `FormatError` where they contradict each other.
    """
    if file.metadata.get(f"{PREFIX}version") != VERSION:
        return None
    texts = file.metadata.get(f"{PREFIX}texts")
    arrays = {name: _array(file, name, kind) for name, kind in _TYPES.items()}
    lengths, prompt, columns = arrays["text_lengths"].tolist(), arrays["prompt"], arrays["columns"]
    prompt = prompt[prompt >= 0]
    n = len(prompt)
    if n == 0:
        return None
    sound = isinstance(texts, StringArray) and len(texts) == len(lengths) and len(arrays["layout"]) == 1
    sound &= sum(length for length in lengths if length > 0) <= len(arrays["text_ids"])
    sound &= len(columns) > 0 and len(arrays["sample"]) >= n * len(columns)
    sound &= n <= PROMPT_TOKENS
    if not sound or any(len(arrays[name]) < n for name in _PER_ROW):
        raise FormatError(f"{PREFIX}*: the arrays contradict each other: the file is damaged", path=file.path)
    sample = arrays["sample"][: n * len(columns)].reshape(n, -1)
    rows = Rows(columns, sample, **{name: arrays[name][:n] for name in _PER_ROW})
    ids = tuple(_cut(arrays["text_ids"], lengths))
    return GoldenVectors(
        tuple(cast("StringArray", texts)), ids, int(arrays["layout"][0]), arrays["tensors"], prompt, rows
    )


def _array(file: GGUFFile, name: str, kind: str) -> NDArray[Any]:
    value = file.metadata.get(PREFIX + name)
    if not isinstance(value, np.ndarray) or file.types[PREFIX + name] != kind:
        raise FormatError(f"{PREFIX}{name} is missing or no array of {kind}: the file is damaged", path=file.path)
    return value


def _cut(ids: Ints, lengths: list[int]) -> Iterator[Ints | None]:
    start = 0
    for length in lengths:
        yield None if length < 0 else ids[start : start + length]
        start += max(length, 0)


def _pad(array: NDArray[Any], count: int) -> NDArray[Any]:
    rest = np.full(count - len(array), -1 if array.dtype.kind == "i" else 0, array.dtype)
    return np.concatenate([array, rest])
