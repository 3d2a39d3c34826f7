"""`check_parity`: our tokenizer against the original over many texts, before anyone relies on it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from ...errors import FormatError, HalfbyteError, UnsupportedError
from ...formats import Typed
from ...text import Tokenizer, build_tokenizer
from ...text.rules import RULES
from ...text.vocabulary import TokenType
from .tokenizer_battery import AROUND, TEXTS
from .tokenizer_source import TokenizerSource

_log = logging.getLogger("halfbyte.convert")

_MOST_TOKENS = 24
_SHOWN = 8


def check_parity(source: TokenizerSource, metadata: Mapping[str, object]) -> None:
    """Raise `UnsupportedError` with the first text whose ids or decoded text differ from the original's."""
    ours = _build(source, metadata)
    for text in (*TEXTS, *_around_added(source, ours)):
        theirs = source.original.encode(text)
        _compare(source, text, theirs, ours.encode(text, special=source.parses_control, bos=False, eos=False))
    # WordPiece forgets where spaces were, and everybody puts them where he likes.
    for text in TEXTS if source.ggml_model != "bert" else ():
        ids = source.original.encode(text)
        if source.original.decode(ids) == text != ours.decode(ids):
            raise UnsupportedError(
                f"{source.path}: the tokenizer cannot be expressed exactly: the ids of {text!r} become "
                f"{ours.decode(ids)!r}"
            )
    for text in TEXTS[:_SHOWN]:
        marked = source.original.encode_marked(text)
        if marked is not None and not source.is_silent:
            _compare(source, text, marked, ours.encode(text, special=True))


def report_other_readers(source: TokenizerSource, metadata: Mapping[str, object]) -> None:
    """Log how many texts get other ids from a reader that knows the format's own keys alone."""
    named = {key: value for key, value in metadata.items() if not key.startswith(RULES)}
    try:
        theirs = _build(source, named)
    except HalfbyteError as error:
        _log.warning("%s: readers other than ours cannot use this tokenizer (%s)", source.path, error)
        return
    special = source.parses_control
    differing = [
        text
        for text in TEXTS
        if theirs.encode(text, special=special, bos=False, eos=False) != source.original.encode(text)
    ]
    if differing:
        level = logging.WARNING if len(differing) > len(TEXTS) // 10 else logging.INFO
        form = "%s: readers that do not know our rules give other ids for %d of %d texts, the first is %r"
        _log.log(level, form, source.path, len(differing), len(TEXTS), differing[0])


def _build(source: TokenizerSource, metadata: Mapping[str, object]) -> Tokenizer:
    plain = {key: value.value if isinstance(value, Typed) else value for key, value in metadata.items()}
    try:
        return build_tokenizer(plain)
    except FormatError as error:
        raise UnsupportedError(f"{source.path}: the tokenizer cannot be expressed: {error}") from error


def _compare(source: TokenizerSource, text: str, theirs: list[int], ours: list[int]) -> None:
    if ours == theirs:
        return
    place = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
    start = max(0, place - 2)
    raise UnsupportedError(
        f"{source.path}: the tokenizer cannot be expressed exactly: for the text {text!r} the original gives "
        f"{len(theirs)} ids and ours {len(ours)}, which differ at place {place}: "
        f"{theirs[start : start + _SHOWN]} and {ours[start : start + _SHOWN]} from place {start}"
    )


def _around_added(source: TokenizerSource, ours: Tokenizer) -> Iterable[str]:
    """Texts with some of the added tokens in their midst: all that have flags of a kind, but not thousands."""
    if not source.parses_control:
        return
    chosen: dict[tuple[object, ...], list[str]] = {}
    for i, token in source.tokens.items():
        if token.added is not None and i < ours.vocab_size:
            chosen.setdefault((token.added, token.type == TokenType.USER_DEFINED), []).append(token.text)
    texts = [text for group in chosen.values() for text in (*group[: _SHOWN // 2], *group[-2:])][:_MOST_TOKENS]
    for i, text in enumerate(texts):
        for form in AROUND:
            yield form.format(text, texts[i - 1])
