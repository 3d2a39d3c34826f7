"""`TokenizerSource`: what a checkpoint's tokenizer is, whichever files it was read from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ...text.rules import Flag
from ...text.vocabulary import TokenType


class Original(Protocol):
    """The tokenizer by the library that it was made with."""

    def encode(self, text: str) -> list[int]:
        """Ids of a text without marks at its ends."""

    def encode_marked(self, text: str) -> list[int] | None:
        """Ids with marks at the ends as the files have it, None where another file says otherwise."""

    def decode(self, ids: list[int]) -> str:
        """Text of ids, control tokens left out."""


@dataclass(slots=True)
class Token:
    """`added`: flags of a token that is cut out of texts, None for one that only the model makes."""

    text: str
    type: TokenType = TokenType.NORMAL
    score: float = 0.0
    added: Flag | None = None


@dataclass
class TokenizerSource:
    """`tokens` by id, with holes; `model` is the JSON of the rules for the model, `facts` further metadata.

    `prefix` and `suffix` mark the ends of a text; where the source `is_silent` on that, flags of other files count.
    `parses_control`: the original takes control tokens in texts for tokens.
    """

    path: Path
    original: Original
    tokens: dict[int, Token]
    ggml_model: str
    model: dict[str, Any]
    ggml_pre: str = "default"
    unknown_id: int | None = None
    add_space_prefix: bool = False
    has_scores: bool = False
    normalizer: Any = None
    pre_tokenizer: Any = None
    is_silent: bool = True
    prefix: list[int] = field(default_factory=list)
    suffix: list[int] = field(default_factory=list)
    facts: dict[str, object] = field(default_factory=dict)
    parses_control: bool = True
