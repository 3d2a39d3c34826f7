"""Log probabilities of tokens, in the forms of chats and of completions."""

from __future__ import annotations

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
    """`logprobs` of a choice of a completion, event by event: it counts where each token begins in the text."""

    def __init__(self, tokenizer: Tokenizer, offset: int = 0) -> None:
        self._tokenizer = tokenizer
        self._offset = offset

    def of(self, tokens: Sequence[TokenLogprobs]) -> dict[str, Any]:
        """The next tokens."""
        texts = [self._spell(one.token) for one in tokens]
        offsets = []
        for text in texts:
            offsets.append(self._offset)
            self._offset += len(text)
        return {
            "tokens": texts,
            "token_logprobs": [_finite(one.logprob) for one in tokens],
            "top_logprobs": [{self._spell(token): _finite(logprob) for token, logprob in one.top} for one in tokens],
            "text_offset": offsets,
        }

    def _spell(self, token: int) -> str:
        return spell(self._tokenizer, token).decode(errors="replace")
