"""`Tokenizer`: text to ids and back, for one file's vocabulary."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from ..errors import RequestError
from .splitter import Splitter
from .vocabulary import TokenType, Vocabulary

SPACE_MARK = "\u2581"
"""How SentencePiece vocabularies spell a space."""

_SILENT = (TokenType.CONTROL, TokenType.UNKNOWN, TokenType.UNUSED, TokenType.UNDEFINED)


class Tokenizer(ABC):
    """Special tokens are of two kinds: user-defined ones count wherever they stand, control tokens where asked for."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.vocab_size = len(vocabulary.tokens)
        self.bos_id = vocabulary.bos_id
        self.eos_id = vocabulary.eos_id
        self.eog_ids = vocabulary.eog_ids
        self.add_bos = vocabulary.add_bos
        self._leads = vocabulary.add_space_prefix
        self._silent = frozenset(vocabulary.ids_of(*_SILENT))

    @abstractmethod
    def _encode_plain(self, text: str) -> list[int]:
        """Ids of a stretch of text that holds no special token."""

    @abstractmethod
    def _spell(self, token: int) -> bytes:
        """UTF-8 bytes of a token that is neither silent nor user-defined."""

    def encode(
        self,
        text: str,
        special: bool = False,
        bos: bool | None = None,
        literal: Sequence[int] = (),
        eos: bool | None = None,
    ) -> list[int]:
        """Ids of `text`; raises `RequestError` for a lone surrogate, which no UTF-8 text can hold.

        `special`: control tokens spelt out in the text count as tokens, save where they touch a position in `literal`
        (ascending). `bos`: whether begin tokens come first, None for as the file says; a text that begins with them
        gets no second ones. `eos`: the same of end tokens, which are as a rule for texts to embed alone.
        """
        _refuse_surrogates(text)
        ids = self._encode_parts(text, special, literal)
        vocabulary = self.vocabulary
        prefix = vocabulary.prefix if (self.add_bos if bos is None else bos) else ()
        if tuple(ids[: len(prefix)]) != prefix:
            ids[:0] = prefix
        return ids + list(vocabulary.suffix) if (vocabulary.add_eos if eos is None else eos) else ids

    def _encode_parts(self, text: str, special: bool, literal: Sequence[int]) -> list[int]:
        """Ids of the stretches of plain text and of the special tokens between them."""
        ids: list[int] = []
        after_special = True
        for part in (self._special_splitter if special else self._plain_splitter).split(text, literal):
            if isinstance(part, int):
                ids.append(part)
                after_special = True
            else:
                lead = " " if after_special and self._leads else ""
                ids += self._encode_plain(lead + part)
                after_special = False
        return ids

    def decode(self, ids: Iterable[int], special: bool = False, continues: bool = False) -> str:
        """Text of `ids`; bytes that are not UTF-8 become U+FFFD. `special`: control tokens are spelt out.

        `continues`: the ids go on from other text, so a leading space is kept. Raises `RequestError` for an id outside
        the vocabulary.
        """
        return b"".join(self.pieces(ids, special, continues)).decode("utf-8", "replace")

    def pieces(self, ids: Iterable[int], special: bool = False, continues: bool = False) -> Iterator[bytes]:
        """Bytes each id adds to the output, the space that `encode` put in front taken away again."""
        at_start = self.vocabulary.add_space_prefix and not continues
        for token in ids:
            piece = self.token_bytes(token)
            if special and token in self._silent:
                yield self._text_bytes(token)
                continue
            if at_start and piece:
                at_start = False
                piece = self.without_lead(token, piece)
            yield piece

    def token_bytes(self, token: int) -> bytes:
        """Bytes the token adds to the output: none for control tokens. They need not be whole characters."""
        if not 0 <= token < self.vocab_size:
            raise RequestError(f"token id {token} is not in the vocabulary, which has ids 0 to {self.vocab_size - 1}")
        if token in self._silent:
            return b""
        return self._text_bytes(token) if token in self._user_defined else self._spell(token)

    def without_lead(self, token: int, piece: bytes) -> bytes:
        """The bytes of a text's first token less the space that `encode` put in front."""
        return piece.removeprefix(b" ")

    def token_text(self, token: int) -> str:
        """The token for people to read, control tokens included; half characters show as U+FFFD."""
        piece = self.token_bytes(token)
        return piece.decode("utf-8", "replace") if piece else self.vocabulary.tokens[token]

    def _text_bytes(self, token: int) -> bytes:
        # Bytes that were not UTF-8 in the file travel as lone surrogates.
        return self.vocabulary.tokens[token].encode("utf-8", "surrogateescape")

    @cached_property
    def _user_defined(self) -> dict[int, str]:
        tokens = self.vocabulary.tokens
        return {i: tokens[i] for i in self.vocabulary.ids_of(TokenType.USER_DEFINED)}

    @cached_property
    def _plain_splitter(self) -> Splitter:
        return Splitter({text: i for i, text in self._user_defined.items()}, {})

    @cached_property
    def _special_splitter(self) -> Splitter:
        vocabulary = self.vocabulary
        control = {text: vocabulary.ids[text] for text in vocabulary.control_texts}
        return Splitter({text: i for i, text in self._user_defined.items()}, control)


def _refuse_surrogates(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RequestError(
            f"the text holds a lone surrogate, U+{ord(text[error.start]):04X}, at character {error.start}: it is no "
            "valid Unicode. Decode the input with errors='replace' first"
        ) from None
