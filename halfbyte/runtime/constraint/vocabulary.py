"""`view`: a tokenizer's vocabulary as llguidance takes it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...text import Tokenizer


class Words:
    """The bytes of every token, which of them stand for no text, and how text falls apart into them."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        spelt = [tokenizer.token_bytes(token) for token in range(tokenizer.vocab_size)]
        names = tokenizer.vocabulary.tokens
        self.special_token_ids = [token for token, text in enumerate(spelt) if not text]
        self.tokens = [text or names[token].encode("utf-8", "replace") for token, text in enumerate(spelt)]
        self.eos_token_id = ends(tokenizer)[0]
        self.bos_token_id = tokenizer.bos_id
        self._tokenizer = tokenizer
        self._spelt = spelt

    def __call__(self, text: str) -> list[int]:
        """Ids of text that goes on from other text; raises `TypeError` for bytes, which llguidance tries first."""
        if not isinstance(text, str):
            raise TypeError("tokens are made of text")
        # A tokenizer that puts a space in front does so before a line's end as well, which is then left out.
        for before in ("", "\n"):
            ids = self._tokenizer.encode(before + text, bos=False, eos=False)
            inner = self._behind(ids, before.encode())
            if self._spell(inner) == text.encode():
                return inner
        return self._greedy(text.encode())

    def _behind(self, ids: list[int], before: bytes) -> list[int]:
        """Those behind the tokens that spell `before`, with a space or without."""
        at = 0
        while at < len(ids) and self._spell(ids[:at]).lstrip(b" ") != before:
            at += 1
        return ids[at:]

    def _spell(self, ids: list[int]) -> bytes:
        return b"".join(self._spelt[token] for token in ids)

    def _greedy(self, text: bytes) -> list[int]:
        """The longest token at each place, where the tokenizer changes what it reads."""
        ids, at = [], 0
        while at < len(text):
            ends = range(min(len(text), at + self._longest), at, -1)
            end = next((end for end in ends if text[at:end] in self._ids), at)
            if end > at:
                ids.append(self._ids[text[at:end]])
            at = max(end, at + 1)
        return ids

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        return {text: token for token, text in reversed(list(enumerate(self._spelt))) if text}

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._ids), default=1)


def view(tokenizer: Tokenizer) -> Any:
    """An `llguidance.LLTokenizer`; takes a second for 150,000 tokens."""
    import llguidance
    from llguidance._tokenizer import TokenizerWrapper

    wrapped = TokenizerWrapper(Words(tokenizer))
    return llguidance.LLTokenizer(wrapped, n_vocab=tokenizer.vocab_size, eos_token=ends(tokenizer))


def ends(tokenizer: Tokenizer) -> list[int]:
    """Tokens that end an answer, the main one first; without any, one that cannot be chosen."""
    others = sorted(tokenizer.eog_ids - {tokenizer.eos_id})
    return ([] if tokenizer.eos_id is None else [tokenizer.eos_id]) + others
