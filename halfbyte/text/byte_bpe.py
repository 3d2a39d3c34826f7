"""Byte-level BPE, as GPT-2 began it: `tokenizer.ggml.model` "gpt2"."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from tokenizers import Regex
from tokenizers import Tokenizer as RustTokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split

from ..errors import FormatError
from .byte_alphabet import BYTE_OF_CHAR, bytes_of
from .fields import Fields
from .pre_tokenizers import PreTokenizer, find_pre_tokenizer
from .tokenizer import Tokenizer
from .vocabulary import KEY, Defaults, TokenType, Vocabulary, read_vocabulary

_SHOWN = 3
_SPACE, _NEWLINE = b" \n"
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


def _build_model(vocabulary: Vocabulary, merges: list[str], ignore_merges: bool) -> BPE:
    # Without them in the model, no plain text can ever spell a control token.
    plain = dict(vocabulary.ids)
    for token in vocabulary.ids_of(*_NEVER_PLAIN):
        del plain[vocabulary.tokens[token]]
    pairs = _split_merges(merges)
    try:
        return BPE(plain, pairs, ignore_merges=ignore_merges)
    except Exception:
        # The Rust side names one bad merge at most; the slow look here names the first few, or lets them pass.
        _check_merges(vocabulary, pairs)
    # A token that is no UTF-8 can be no text, and the Rust side takes text only.
    plain = {token: i for token, i in plain.items() if token.isascii() or _is_text(token)}
    sound = [(a, b) for a, b in pairs if a in plain and b in plain and a + b in plain]
    return BPE(plain, sound, ignore_merges=ignore_merges)


def _is_text(token: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in token)


def _split_merges(merges: list[str]) -> list[tuple[str, str]]:
    joined = "\n".join(merges)
    marks = np.frombuffer(joined.encode("utf-8", "surrogateescape"), np.uint8)
    marks = marks[(marks == _SPACE) | (marks == _NEWLINE)]
    if len(marks) != max(0, 2 * len(merges) - 1) or (marks[::2] != _SPACE).any() or (marks[1::2] != _NEWLINE).any():
        wrong = [merge for merge in merges if merge.count(" ") != 1 or "\n" in merge]
        shown = ", ".join(map(repr, wrong[:_SHOWN]))
        raise FormatError(f"{KEY}merges: {len(wrong)} are not two tokens with one space between, as {shown}")
    words = iter(joined.replace("\n", " ").split(" ") if merges else [])
    return list(zip(words, words, strict=True))


def _check_merges(vocabulary: Vocabulary, pairs: list[tuple[str, str]]) -> None:
    known = vocabulary.ids
    unknown = [f"{a} {b}" for a, b in pairs if a not in known or b not in known or a + b not in known]
    if unknown:
        shown = ", ".join(map(repr, unknown[:_SHOWN]))
        raise FormatError(f"{KEY}merges: {len(unknown)} name tokens that are not in {KEY}tokens, as {shown}")
