"""Byte-level BPE, as GPT-2 began it: `tokenizer.ggml.model` "gpt2"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokenizers import Regex
from tokenizers import Tokenizer as RustTokenizer
from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split

from ..errors import FormatError
from .byte_alphabet import BYTE_OF_CHAR, bytes_of
from .fields import Fields
from .merges import build_bpe, split_merges
from .pre_tokenizers import PreTokenizer, find_pre_tokenizer
from .tokenizer import Tokenizer
from .vocabulary import KEY, Defaults, TokenType, Vocabulary, read_vocabulary

_NEVER_PLAIN = (TokenType.CONTROL, TokenType.UNUSED, TokenType.USER_DEFINED)


class ByteBpe(Tokenizer):
    """Text is cut into words, words into bytes, and bytes are merged in the file's order.

    A byte that the vocabulary has no token for is left out, as the models that lack some were trained.
    """

    def __init__(self, vocabulary: Vocabulary, merges: list[str], pre: PreTokenizer) -> None:
        super().__init__(vocabulary)
        if not any(char in vocabulary.ids for char in BYTE_OF_CHAR):
            raise FormatError(f"{KEY}tokens: has no token for a single byte, so no text can be encoded")
        self._rust = RustTokenizer(_build_model(vocabulary, merges, pre.ignore_merges))
        splits = [Split(Regex(pattern), "isolated") for pattern in pre.patterns]
        self._rust.pre_tokenizer = Sequence([*splits, ByteLevel(add_prefix_space=False, use_regex=False)])

    def _encode_plain(self, text: str) -> list[int]:
        ids: list[int] = self._rust.encode(text, add_special_tokens=False).ids
        return ids

    def _spell(self, token: int) -> bytes:
        return bytes_of(self.vocabulary.tokens[token])


def build(metadata: Mapping[str, object]) -> Tokenizer:
    """A tokenizer from GGUF metadata. Raises `FormatError`, and `UnsupportedError` for an unknown pre-tokenizer."""
    fields = Fields(metadata)
    merges = fields.strings(KEY + "merges", required=True)
    name = fields.text(KEY + "pre", "default")
    fields.raise_problems()
    pre = find_pre_tokenizer(name)
    vocabulary = read_vocabulary(metadata, Defaults(add_bos=pre.add_bos))
    return ByteBpe(vocabulary, merges, pre)


def _build_model(vocabulary: Vocabulary, merges: list[str], ignore_merges: bool) -> Any:
    # Without them in the model, no plain text can ever spell a control token.
    plain = dict(vocabulary.ids)
    for token in vocabulary.ids_of(*_NEVER_PLAIN):
        del plain[vocabulary.tokens[token]]
    return build_bpe(plain, vocabulary.ids, split_merges(merges), ignore_merges=ignore_merges)
