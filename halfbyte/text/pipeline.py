"""`Pipeline`: a tokenizer of the library's own stages, as the rules in a file describe them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from tokenizers import PreTokenizedString, Regex
from tokenizers import Tokenizer as RustTokenizer

from ..errors import HalfbyteError, RequestError
from .added_tokens import splitter_of
from .byte_alphabet import bytes_of
from .byte_tokens import read_byte_tokens
from .charsmap import read_charsmap
from .library_errors import library_errors
from .pipeline_model import build_model
from .rules import Flag, Rules
from .splitter import Splitter
from .stages import build_stages, inner_pre_tokenizer
from .tokenizer import SPACE_MARK, Tokenizer
from .vocabulary import Vocabulary


class Pipeline(Tokenizer):
    """Added tokens are cut out, the rest is normalized, tokens added in normal form are cut out, words go to the model.

    `metadata` for what is neither vocabulary nor rules.
    """

    def __init__(self, vocabulary: Vocabulary, rules: Rules, metadata: Mapping[str, object]) -> None:
        super().__init__(vocabulary)
        self._rules = rules
        self._byte_of = read_byte_tokens(vocabulary)
        normalizer, pre_tokenizer = build_stages(rules, read_charsmap(metadata))
        self._normalizer = normalizer
        model, self._id_map = build_model(vocabulary, rules, metadata)
        self._rust = _assemble(model, None if self._is_late else normalizer, pre_tokenizer)
        self._inner = self._rust
        inner = inner_pre_tokenizer(rules.pre_tokenizer)
        if inner != rules.pre_tokenizer:
            _, pre_tokenizer = build_stages(Rules(rules.model, None, inner), b"")
            self._inner = _assemble(model, self._rust.normalizer, pre_tokenizer)

    @cached_property
    def _is_late(self) -> bool:
        """Whether tokens are looked for in normalized text."""
        return self._normalizer is not None and any(Flag.NORMALIZED in flags for flags in self._rules.added.values())

    def _encode_parts(self, text: str, special: bool, literal: Sequence[int]) -> list[int]:
        ids: list[int] = []
        for start, part in self._splitters[Flag(0), special].cut(text, literal):
            if isinstance(part, int):
                ids.append(part)
            elif self._is_late:
                ids += self._encode_late(start, part, special, literal)
            else:
                ids += self._encode_words(start == 0, part)
        return ids

    def _encode_late(self, start: int, part: str, special: bool, literal: Sequence[int]) -> Iterator[int]:
        inside = literal[bisect_left(literal, start) : bisect_left(literal, start + len(part))]
        normal = self._normalize(part)
        with library_errors(_refused):
            places = _follow(self._normalizer, part, {at - start for at in inside}) if inside else ()
        for at, piece in self._splitters[Flag.NORMALIZED, special].cut(normal, places):
            if isinstance(piece, int):
                yield piece
            else:
                yield from self._encode_words(start == at == 0, piece)

    def _encode_words(self, first: bool, text: str) -> list[int]:
        with library_errors(_refused):
            ids: list[int] = (self._rust if first else self._inner).encode(text, add_special_tokens=False).ids
        return ids if self._id_map is None else self._id_map[ids].tolist()

    def _encode_plain(self, text: str) -> list[int]:
        return self._encode_words(True, text)

    def _spell(self, token: int) -> bytes:
        spelling = self._rules.model.spelling
        if token in self._byte_of:
            return bytes([self._byte_of[token]])
        if spelling == "bytes":
            return bytes_of(self.vocabulary.tokens[token])
        raw = super()._text_bytes(token)
        return raw.replace(SPACE_MARK.encode(), b" ") if spelling == "marks" else raw

    def without_lead(self, token: int, piece: bytes) -> bytes:
        """A space of an added token's own is taken too, or only one that its normal form gave it."""
        has_lead = token not in self._user_defined or self._normal_form(token).startswith(SPACE_MARK)
        has_lead |= self._rules.model.strips_any_space
        return super().without_lead(token, piece) if has_lead else piece

    def _text_bytes(self, token: int) -> bytes:
        if not self._is_found_late(token):
            return super()._text_bytes(token)
        # The library puts out what it found in the text.
        normal = self._normal_form(token)
        return bytes_of(normal) if self._rules.model.spelling == "bytes" else normal.replace(SPACE_MARK, " ").encode()

    def _normal_form(self, token: int) -> str:
        text = self.vocabulary.tokens[token]
        return self._normalize(text) if self._is_found_late(token) else text

    def _normalize(self, text: str) -> str:
        with library_errors(_refused):
            return str(self._normalizer.normalize_str(text))

    def _is_found_late(self, token: int) -> bool:
        return self._is_late and Flag.NORMALIZED in self._rules.added.get(token, Flag(0))

    @cached_property
    def _splitters(self) -> dict[tuple[Flag, bool], Splitter]:
        added = self._rules.added
        found = {}
        for special in (False, True):
            raw = {i: flags for i, flags in added.items() if not (self._is_late and Flag.NORMALIZED in flags)}
            found[Flag(0), special] = splitter_of(self.vocabulary, raw, special)
            if self._is_late:
                late = {i: flags for i, flags in added.items() if Flag.NORMALIZED in flags}
                found[Flag.NORMALIZED, special] = splitter_of(self.vocabulary, late, special, self._normalize)
        return found


def _assemble(model: Any, normalizer: Any, pre_tokenizer: Any) -> Any:
    rust = RustTokenizer(model)
    if normalizer is not None:
        rust.normalizer = normalizer
    if pre_tokenizer is not None:
        rust.pre_tokenizer = pre_tokenizer
    return rust


def _follow(normalizer: Any, text: str, places: set[int]) -> list[int]:
    """Where the characters at `places` are in the normalized text."""
    pieces = PreTokenizedString(text)
    pieces.normalize(normalizer.normalize)
    pieces.split(lambda _, piece: piece.split(Regex(r"[\s\S]"), "isolated"))
    found: list[int] = []
    at = 0
    for piece, (start, end), _ in pieces.get_splits("original", "char"):
        found += range(at, at + len(piece)) if places.intersection(range(start, end)) else ()
        at += len(piece)
    return found


def _refused(reason: str) -> HalfbyteError:
    return RequestError(f"the file's tokenizer gives up on the text ({reason})")
