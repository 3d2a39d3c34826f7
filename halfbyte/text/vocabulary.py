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
from .turn_ends import PLAIN_ENDS, SURE_ENDS, find_turn_ends

KEY = "tokenizer.ggml."
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


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Shapes: `tokens` V different strings as the file spells them, none empty; `types` i32[V]; `scores` f32[V]."""

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
        return typed + [t for t in PLAIN_ENDS if t in self.ids and self.types[self.ids[t]] == TokenType.NORMAL]


def read_vocabulary(metadata: Mapping[str, object], defaults: Defaults) -> Vocabulary:
    """Read and check `tokenizer.ggml.*`. Raises one `FormatError` that names every key that is wrong."""
    fields = Fields(metadata)
    model = fields.text(KEY + "model", "")
    tokens = fields.strings(KEY + "tokens", required=True)
    ids = dict(zip(tokens, range(len(tokens)), strict=True))
    _check_tokens(fields, tokens, ids)
    size = len(tokens)
    scores = fields.numbers(KEY + "scores", size, np.float32)
    types = fields.numbers(KEY + "token_type", size, np.int32)
    if types is not None and size and not 0 <= types.min() <= types.max() <= max(TokenType):
        fields.problem(KEY + "token_type", f"holds types other than 0 to {max(TokenType)}")
    bos_id = fields.token_id(KEY + "bos_token_id", size, defaults.bos_id)
    eos_id = fields.token_id(KEY + "eos_token_id", size, defaults.eos_id)
    unknown_id = fields.token_id(KEY + "unknown_token_id", size, defaults.unknown_id)
    ends = [eos_id, *(fields.token_id(KEY + name, size, None) for name in ("eot_token_id", "eom_token_id"))]
    add_bos = fields.flag(KEY + "add_bos_token", defaults.add_bos)
    add_space_prefix = fields.flag(KEY + "add_space_prefix", defaults.add_space_prefix)
    fields.raise_problems()

    if types is None:
        types = _guess_types(size, [bos_id, *ends])
    types[[ids[text] for text in SURE_ENDS if text in ids]] = TokenType.CONTROL
    eog_ids = find_turn_ends(ids, lambda i: types[i] == TokenType.CONTROL)
    return Vocabulary(
        model=model,
        tokens=tokens,
        ids=ids,
        types=types,
        scores=scores,
        bos_id=bos_id,
        eos_id=eos_id,
        unknown_id=unknown_id,
        eog_ids=eog_ids | {i for i in ends if i is not None},
        add_bos=add_bos and bos_id is not None,
        add_space_prefix=add_space_prefix,
    )


def _check_tokens(fields: Fields, tokens: list[str], ids: dict[str, int]) -> None:
    key = KEY + "tokens"
    if not tokens and not fields.problems:
        fields.problem(key, "is empty")
    if "" in ids:
        fields.problem(key, f"token {ids['']} has no text")
    if len(ids) < len(tokens):
        doubled = [text for text, times in Counter(tokens).items() if times > 1 and text]
        if doubled:
            fields.problem(key, f"{len(doubled)} texts occur twice, as {', '.join(map(repr, doubled[:_SHOWN]))}")


def _guess_types(size: int, control: list[int | None]) -> NDArray[np.int32]:
    types = np.full(size, TokenType.NORMAL, np.int32)
    types[[i for i in control if i is not None]] = TokenType.CONTROL
    return types
