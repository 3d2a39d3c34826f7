"""`Rules`: what a tokenizer does beyond what `tokenizer.ggml.*` can say, from keys of our own.

The converter writes them, so that the ids are those of the original. Files of others have none of these keys, and the
tokenizer is then what the names in the file imply.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import IntFlag
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError, UnsupportedError
from .fields import Fields

RULES = "halfbyte.tokenizer."
MODEL_RULES = RULES + "model"
"""A file that has this key has rules."""
_MAX_JSON = 1 << 17
_KINDS = ("BPE", "Unigram", "WordPiece", "SentencePiece")
SPELLINGS = ("bytes", "marks", "plain")


class Flag(IntFlag):
    """What `halfbyte.tokenizer.added_flags` says of an added token."""

    LSTRIP = 1
    RSTRIP = 2
    SINGLE_WORD = 4
    NORMALIZED = 8
    """It is looked for in normalized text."""
    IN_MODEL = 16
    """The model has it too, so words may be made of it."""


@dataclass(frozen=True)
class ModelRules:
    """`halfbyte.tokenizer.model`: which algorithm, and its options.

    `spelling`: tokens spell "bytes" in the alphabet of byte-level vocabularies, spaces as "marks", or all is "plain".
    `prefix_once`: no mark of a space goes before text behind a special token.
    `strips_any_space`: decoding takes a space from the front of a text, whichever token it is of.
    """

    type: str
    spelling: str = "marks"
    strips_any_space: bool = False
    unk: bool = False
    fuse_unk: bool = False
    byte_fallback: bool = False
    ignore_merges: bool = False
    max_input_chars_per_word: int = 100
    unigram: bool = False
    add_dummy_prefix: bool = True
    prefix_once: bool = False
    remove_extra_whitespaces: bool = True
    escape_whitespaces: bool = True
    treat_whitespace_as_suffix: bool = False
    pieces: int = 0


@dataclass(frozen=True, eq=False)
class Rules:
    """Shapes: `merges` i32[M, 2] ids, `scores` f64[V]. `added` is by token id."""

    model: ModelRules
    normalizer: Any = None
    pre_tokenizer: Any = None
    added: Mapping[int, Flag] = field(default_factory=dict)
    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    merges: NDArray[np.int32] | None = None
    scores: NDArray[np.float64] | None = None


def read_rules(metadata: Mapping[str, object], size: int) -> Rules | None:
    """The rules in a file for `size` tokens, None where it has none.

    Raises `FormatError` for damaged ones and `UnsupportedError` for ones that a later version wrote.
    """
    if MODEL_RULES not in metadata:
        return None
    read = Fields(metadata)
    ids = {name: _ids(read, name, size) for name in ("added", "prefix", "suffix", "end", "merge")}
    flags = read.numbers(RULES + "added_flags", len(ids["added"]), np.int32)
    if flags is None:
        flags = np.zeros(len(ids["added"]), np.int32)
    if len(ids["merge"]) % 2:
        read.problem(RULES + "merge_ids", f"has {len(ids['merge'])} entries, which is not two a merge")
    stages = [_tree(read, name) for name in ("normalizer", "pre_tokenizer", "model")]
    scores = read.numbers(RULES + "scores", size, np.float64)
    read.raise_problems()
    return Rules(
        model=_model_rules(stages[2]),
        normalizer=stages[0],
        pre_tokenizer=stages[1],
        added={int(i): Flag(int(flag)) for i, flag in zip(ids["added"], flags, strict=True)},
        prefix=tuple(ids["prefix"].tolist()),
        suffix=tuple(ids["suffix"].tolist()),
        ends=tuple(ids["end"].tolist()),
        merges=ids["merge"].reshape(-1, 2) if len(ids["merge"]) else None,
        scores=scores,
    )


def _ids(read: Fields, name: str, size: int) -> NDArray[np.int32]:
    key = f"{RULES}{name}_ids"
    ids = read.integers(key)
    if len(ids) and not 0 <= ids.min() <= ids.max() < size:
        read.problem(key, f"holds ids other than 0 to {size - 1}")
        return np.zeros(0, np.int32)
    return ids.astype(np.int32)


def _tree(read: Fields, name: str) -> Any:
    text = read.text(RULES + name, "null")
    if len(text) > _MAX_JSON:
        read.problem(RULES + name, f"is {len(text)} characters long, and {_MAX_JSON} are the most")
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        read.problem(RULES + name, "is no JSON")
        return None


def _model_rules(tree: Any) -> ModelRules:
    if not isinstance(tree, dict):
        raise FormatError(f"{MODEL_RULES}: wants a JSON object, not {type(tree).__name__}; convert the file again")
    if tree.get("type") not in _KINDS or tree.get("spelling", "marks") not in SPELLINGS:
        raise UnsupportedError(
            f"{MODEL_RULES}: {tree.get('type')!r} with spelling {tree.get('spelling')!r} is not known", known=_KINDS
        )
    known = {option.name: option.type for option in fields(ModelRules)}
    for name, value in tree.items():
        if name not in known:
            raise UnsupportedError(
                f"{MODEL_RULES}: unknown option {name!r}; a later version wrote this file", known=known
            )
        if type(value).__name__ != known[name] or (isinstance(value, int) and not 0 <= value < 1 << 31):
            raise FormatError(f"{MODEL_RULES}: {name} wants a {known[name]}, not {value!r}; convert the file again")
    return ModelRules(**tree)
