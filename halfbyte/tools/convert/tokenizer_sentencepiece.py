"""`read_sentencepiece`: the tokenizer in a SentencePiece model, and the tokens that other files add to it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sentencepiece import SentencePieceProcessor

from ...errors import FormatError, UnsupportedError
from ...formats import Typed
from ...text.charsmap import charsmap_problem
from ...text.rules import Flag
from ...text.stages import CHARSMAP
from ...text.tokenizer import SPACE_MARK
from ...text.turn_ends import SURE_ENDS
from ...text.vocabulary import KEY, TokenType
from .tokenizer_files import TokenizerFiles
from .tokenizer_proto import as_float, read_proto
from .tokenizer_source import Token, TokenizerSource

NAMES = ("tokenizer.model", "spiece.model")

_PIECE, _TRAINER, _NORMALIZER = 1, 2, 3
_UNIGRAM, _BPE = 1, 2
_TRAINED = {3: "model_type", 24: "treat_whitespace_as_suffix", 35: "byte_fallback"}
_NORMAL = {
    2: "precompiled_charsmap",
    3: "add_dummy_prefix",
    4: "remove_extra_whitespaces",
    5: "escape_whitespaces",
}


@dataclass
class _Model:
    tokens: dict[int, Token] = field(default_factory=dict)
    options: dict[str, Any] = field(
        default_factory=lambda: {
            "model_type": _UNIGRAM,
            "treat_whitespace_as_suffix": 0,
            "byte_fallback": 0,
            "precompiled_charsmap": b"",
            "add_dummy_prefix": 1,
            "remove_extra_whitespaces": 1,
            "escape_whitespaces": 1,
        }
    )


class PieceOriginal:
    """The tokenizer as the sentencepiece library runs it: control tokens in texts are plain text to it."""

    def __init__(self, processor: Any) -> None:
        self._processor = processor

    def encode(self, text: str) -> list[int]:
        """Ids of a text."""
        ids: list[int] = self._processor.encode(text)
        return ids

    def encode_marked(self, text: str) -> list[int] | None:
        """None: marks at the ends are none of the library's business."""
        return None

    def decode(self, ids: list[int]) -> str:
        """Text of ids."""
        return str(self._processor.decode(ids))


def read_sentencepiece(files: TokenizerFiles, path: Path) -> TokenizerSource:
    """Raises `FormatError` for a damaged file, `UnsupportedError` for a model that is neither BPE nor Unigram."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FormatError(f"cannot be read ({error.strerror})", path=path) from None
    model = _read(data, path)
    kind = model.options["model_type"]
    if kind not in (_UNIGRAM, _BPE):
        raise UnsupportedError(
            f"{path}: SentencePiece models of type {kind} are not supported", known=("unigram", "bpe")
        )
    processor = SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(data)
    except RuntimeError as error:
        raise FormatError(f"the sentencepiece library cannot read it ({error})", path=path) from None
    flags = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces", "treat_whitespace_as_suffix")
    rules = {"type": "SentencePiece", "unigram": kind == _UNIGRAM, "pieces": len(model.tokens)}
    rules |= {name: bool(model.options[name]) for name in flags}
    source = TokenizerSource(
        path, PieceOriginal(processor), model.tokens, "t5" if kind == _UNIGRAM else "llama", rules, has_scores=True
    )
    # The configuration's word for the old way of a space before every stretch of text; the old way is the default.
    rules["prefix_once"] = files.tree("tokenizer_config.json").get("legacy", True) is False
    source.unknown_id = next((i for i, token in model.tokens.items() if token.type == TokenType.UNKNOWN), None)
    source.add_space_prefix = rules["add_dummy_prefix"] is True
    source.parses_control = False
    source.facts[KEY + "remove_extra_whitespaces"] = rules["remove_extra_whitespaces"]
    charsmap = model.options["precompiled_charsmap"]
    if charsmap:
        source.facts[CHARSMAP] = Typed(np.frombuffer(charsmap, np.uint8), "u8")
    _add(source, files)
    ends = _ends(source, kind == _BPE)
    source.prefix, source.suffix = ends
    return source


def _read(data: bytes, path: Path) -> _Model:
    model = _Model()
    for number, value in read_proto(data, path):
        if number == _PIECE and isinstance(value, bytes):
            model.tokens[len(model.tokens)] = _piece(value, path)
        elif number in (_TRAINER, _NORMALIZER) and isinstance(value, bytes):
            names = _TRAINED if number == _TRAINER else _NORMAL
            model.options |= {names[key]: setting for key, setting in read_proto(value, path) if key in names}
    if not model.tokens:
        raise FormatError("is no SentencePiece model: it has no pieces; fetch it again", path=path)
    charsmap = model.options["precompiled_charsmap"]
    problem = charsmap_problem(charsmap) if isinstance(charsmap, bytes) else "has no bytes"
    if problem:
        raise FormatError(f"its precompiled_charsmap {problem}", path=path)
    return model


def _piece(data: bytes, path: Path) -> Token:
    values = dict(read_proto(data, path))
    text, score, kind = values.get(1, b""), as_float(values.get(2, bytes(4))), values.get(3, TokenType.NORMAL)
    if not isinstance(text, bytes) or math.isnan(score) or kind not in set(TokenType):
        raise FormatError(f"holds a damaged piece {repr(data)[:60]}; fetch it again", path=path)
    spelt = text.decode("utf-8", "surrogateescape")
    token = Token(spelt, TokenType(kind), score)
    if token.type == TokenType.USER_DEFINED:
        # Readers look for these in texts as they are.
        token.text = spelt.replace(SPACE_MARK, " ")
    elif token.type == TokenType.CONTROL:
        token.added = Flag.IN_MODEL
    return token


def _add(source: TokenizerSource, files: TokenizerFiles) -> None:
    listed = files.tree("tokenizer_config.json").get("added_tokens_decoder", {})
    added = {int(i): entry for i, entry in listed.items()}
    added |= {i: {"content": text} for text, i in files.tree("added_tokens.json").items() if i not in added}
    for i, entry in sorted(added.items()):
        known, text = source.tokens.get(i), entry["content"]
        if known is not None and known.type != TokenType.NORMAL:
            continue
        if known is not None and known.text != text:
            raise FormatError(
                f"adds {text!r} as {i}, which is {known.text!r} in {source.path.name}",
                path=files.folder / "tokenizer_config.json",
            )
        control = bool(entry.get("special", True)) or text in SURE_ENDS
        flags = Flag.IN_MODEL if known is not None else Flag(0)
        for name, flag in (("lstrip", Flag.LSTRIP), ("rstrip", Flag.RSTRIP), ("single_word", Flag.SINGLE_WORD)):
            flags |= flag if entry.get(name) else Flag(0)
        source.tokens[i] = Token(text, TokenType.CONTROL if control else TokenType.USER_DEFINED, added=flags)


def _ends(source: TokenizerSource, is_bpe: bool) -> tuple[list[int], list[int]]:
    """What the models of a kind put at the ends where their files are silent: a begin token, or an end token."""
    wanted = "<s>" if is_bpe else "</s>"
    found = [i for i, token in source.tokens.items() if token.text == wanted and token.type == TokenType.CONTROL][:1]
    begin = [i for i, token in source.tokens.items() if token.text == "<bos>" and token.type == TokenType.CONTROL][:1]
    return (found or begin, []) if is_bpe else ([], found)
