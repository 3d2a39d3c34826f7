"""`check_parity`: our tokenizer against the original over many texts, before anyone relies on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...errors import FormatError, UnsupportedError
from ...formats import Typed
from ...text import Tokenizer, build_tokenizer
from ...text.vocabulary import TokenType
from .tokenizer_battery import AROUND, TEXTS
from .tokenizer_source import TokenizerSource

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
