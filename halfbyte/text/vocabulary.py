"""`Vocabulary`: the tokens of a file and what the file says about them, checked once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .fields import Fields
from .rules import Rules
from .turn_ends import PLAIN_ENDS, SURE_ENDS, find_turn_ends

KEY = "tokenizer.ggml."
_SEPARATOR = "seperator_token_id"  # so spelt in the format
_SHOWN = 3


class TokenType(IntEnum):
    """The numbers in `tokenizer.ggml.token_type`."""

    UNDEFINED = 0
    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True)
class Defaults:
    """What a tokenizer model implies where the file is silent."""

    bos_id: int | None = None
    eos_id: int | None = None
    unknown_id: int | None = None
    add_bos: bool = False
    add_space_prefix: bool = False
    sep_id: int | None = None
    add_sep: bool = False
    add_eos: bool = False


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Shapes: `tokens` V different strings as the file spells them, none empty; `types` i32[V]; `scores` f32[V].

    `prefix` and `suffix` are what begins and ends a text where it is to be marked so. `guessed`: the file leaves open
    which tokens are control tokens.
    """

    model: str
    tokens: list[str]
    ids: dict[str, int]
    types: NDArray[np.int32]
    scores: NDArray[np.float32] | None
    bos_id: int | None
    eos_id: int | None
    unknown_id: int | None
    eog_ids: frozenset[int]
    add_bos: bool
    add_space_prefix: bool
    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    add_eos: bool
    guessed: bool

    def ids_of(self, *types: TokenType) -> list[int]:
        """Ids of all tokens of these types, ascending."""
        found: list[int] = np.flatnonzero(np.isin(self.types, types)).tolist()
        return found

    @cached_property
    def control_texts(self) -> list[str]:
        """Texts that act as control tokens where they are parsed as such.

        An end token that a file types as normal, such as Qwen's `</s>`, is among them; in plain text it merges as ever.
        """
        typed = [self.tokens[i] for i in self.ids_of(TokenType.CONTROL, TokenType.UNKNOWN)]
        if not self.guessed:
            return typed
        return typed + [t for t in PLAIN_ENDS if t in self.ids and self.types[self.ids[t]] == TokenType.NORMAL]


def read_vocabulary(metadata: Mapping[str, object], defaults: Defaults, rules: Rules | None = None) -> Vocabulary:
    """Read and check `tokenizer.ggml.*`. Raises one `FormatError` that names every key that is wrong.

    Where the file has `rules`, nothing is guessed.
    """
    fields = Fields(metadata)
    tokens, ids = _read_tokens(fields)
    size = len(tokens)
    scores = fields.numbers(KEY + "scores", size, np.float32)
    types = _read_types(fields, size)
    named = _read_ids(fields, size, defaults)
    add_bos = fields.flag(KEY + "add_bos_token", defaults.add_bos)
    add_space_prefix = fields.flag(KEY + "add_space_prefix", defaults.add_space_prefix)
    suffix, add_eos = _read_suffix(fields, named, defaults)
    fields.raise_problems()

    prefix: tuple[int, ...] = () if named["bos"] is None else (named["bos"],)
    ends = {i for i in (named["eos"], named["eot"], named["eom"]) if i is not None}
    types = _guess_types(size, [*prefix, *ends]) if types is None else types
    if rules is None:
        types[[ids[text] for text in SURE_ENDS if text in ids]] = TokenType.CONTROL
    else:
        prefix, suffix, ends = rules.prefix or prefix, rules.suffix or suffix, ends | set(rules.ends)
    return Vocabulary(
        model=fields.text(KEY + "model", ""),
        tokens=tokens,
        ids=ids,
        types=types,
        scores=scores,
        bos_id=named["bos"],
        eos_id=named["eos"],
        unknown_id=named["unknown"],
        eog_ids=find_turn_ends(ids, lambda i: types[i] == TokenType.CONTROL) | ends,
        add_bos=add_bos and bool(prefix),
        add_space_prefix=add_space_prefix,
        prefix=prefix,
        suffix=suffix,
        add_eos=add_eos and bool(suffix),
        guessed=rules is None,
    )


def _read_types(fields: Fields, size: int) -> NDArray[np.int32] | None:
    types = fields.numbers(KEY + "token_type", size, np.int32)
    if types is not None and size and not 0 <= types.min() <= types.max() <= max(TokenType):
        fields.problem(KEY + "token_type", f"holds types other than 0 to {max(TokenType)}")
    return types


def _read_ids(fields: Fields, size: int, defaults: Defaults) -> dict[str, int | None]:
    assumed = {"eos": defaults.eos_id, "unknown": defaults.unknown_id, "bos": defaults.bos_id}
    named = {
        name: fields.token_id(f"{KEY}{name}_token_id", size, assumed.get(name))
        for name in ("bos", "eos", "eot", "eom", "unknown")
    }
    named["sep"] = None
    if defaults.sep_id is not None:
        named["sep"] = fields.token_id(KEY + _SEPARATOR, size, defaults.sep_id)
        begin = fields.token_id(KEY + "cls_token_id", size, defaults.bos_id)
        named["bos"] = fields.token_id(KEY + "bos_token_id", size, begin)
    return named


def _read_suffix(fields: Fields, named: Mapping[str, int | None], defaults: Defaults) -> tuple[tuple[int, ...], bool]:
    """End tokens of a text, and whether it gets them where nobody says."""
    with_sep = fields.flag(KEY + "add_sep_token", defaults.add_sep)
    with_eos = fields.flag(KEY + "add_eos_token", defaults.add_eos)
    end = named["sep"] if with_sep else named["eos"]
    return () if end is None else (end,), with_sep or with_eos


def _read_tokens(fields: Fields) -> tuple[list[str], dict[str, int]]:
    key = KEY + "tokens"
    tokens = fields.strings(key, required=True)
    ids = dict(zip(tokens, range(len(tokens)), strict=True))
    if not tokens and not fields.problems:
        fields.problem(key, "is empty")
    if "" in ids:
        fields.problem(key, f"token {ids['']} has no text")
    if len(ids) < len(tokens):
        doubled = [text for text, times in Counter(tokens).items() if times > 1 and text]
        if doubled:
            fields.problem(key, f"{len(doubled)} texts occur twice, as {', '.join(map(repr, doubled[:_SHOWN]))}")
    return tokens, ids


def _guess_types(size: int, control: list[int]) -> NDArray[np.int32]:
    types = np.full(size, TokenType.NORMAL, np.int32)
    types[control] = TokenType.CONTROL
    return types
