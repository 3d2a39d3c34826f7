"""Log probabilities of tokens, in the forms of chats and of completions."""

from __future__ import annotations

import codecs
import math
from collections.abc import Sequence
from typing import Any

from ..runtime.sampling.logprobs import TokenLogprobs
from ..text import Tokenizer

IMPOSSIBLE = -9999.0
"""JSON has no infinity; OpenAI's answers say this."""


def chat_logprobs(tokenizer: Tokenizer, tokens: Sequence[TokenLogprobs]) -> dict[str, Any]:
    """`logprobs` of a choice of a chat completion."""
    return {
        "content": [
            _entry(tokenizer, one.token, one.logprob)
            | {"top_logprobs": [_entry(tokenizer, token, logprob) for token, logprob in one.top]}
            for one in tokens
        ],
        "refusal": None,
    }


def spell(tokenizer: Tokenizer, token: int) -> bytes:
    """The bytes of a token; a control token's are its name, though answers leave it out."""
    return tokenizer.token_bytes(token) or tokenizer.vocabulary.tokens[token].encode("utf-8", "surrogateescape")


def _entry(tokenizer: Tokenizer, token: int, logprob: float) -> dict[str, Any]:
    spelt = spell(tokenizer, token)
    return {"token": spelt.decode(errors="replace"), "logprob": _finite(logprob), "bytes": list(spelt)}


def _finite(logprob: float) -> float:
    return max(logprob, IMPOSSIBLE) if not math.isnan(logprob) else IMPOSSIBLE


class CompletionLogprobs:
    """`logprobs` of a choice of a completion, part by part: it counts where each token begins in the text."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._offset = 0

    def of(self, tokens: Sequence[TokenLogprobs | int]) -> dict[str, Any]:
        """The next tokens; one without a probability is its id alone."""
        known = [None if isinstance(one, int) else one for one in tokens]
        ids = [one if isinstance(one, int) else one.token for one in tokens]
        return {
            "tokens": [self._spell(token) for token in ids],
            "token_logprobs": [None if one is None else _finite(one.logprob) for one in known],
            "top_logprobs": [None if one is None else self._top(one) for one in known],
            "text_offset": [self._advance(token) for token in ids],
        }

    def _top(self, one: TokenLogprobs) -> dict[str, float]:
        return {self._spell(token): _finite(logprob) for token, logprob in one.top}

    def _spell(self, token: int) -> str:
        return spell(self._tokenizer, token).decode(errors="replace")

    def _advance(self, token: int) -> int:
        """Where a token begins: characters that are whole before it."""
        begin = self._offset
        self._offset += len(self._utf8.decode(self._tokenizer.token_bytes(token)))
        return begin
