"""`read_json`: the tokenizer in a `tokenizer.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import AddedToken
from tokenizers import Tokenizer as RustTokenizer

from ...errors import FormatError, UnsupportedError
from ...text.library_errors import library_errors
from ...text.rules import Flag
from ...text.stages import unknown_steps
from ...text.turn_ends import SURE_ENDS
from ...text.vocabulary import TokenType
from ...text.word_starts import library_spelling
from .tokenizer_files import TokenizerFiles
from .tokenizer_json_models import MODELS
from .tokenizer_marks import is_silent, read_marks
from .tokenizer_source import Token, TokenizerSource

NAME = "tokenizer.json"
_LONGEST_ADDED = 1 << 14


class JsonOriginal:
    """The tokenizer as the tokenizers library runs it."""

    def __init__(self, rust: Any, path: Path) -> None:
        self.rust = rust
        self._path = path

    def encode(self, text: str) -> list[int]:
        """Ids of a text without marks at its ends."""
        return self._encode(text, False)

    def encode_marked(self, text: str) -> list[int] | None:
        """Ids with the post-processor's marks."""
        return self._encode(text, True)

    def decode(self, ids: list[int]) -> str:
        """Text of ids, special tokens left out."""
        return str(self.rust.decode(ids))

    def _encode(self, text: str, marked: bool) -> list[int]:
        with library_errors(lambda reason: FormatError(f"cannot encode {text[:80]!r} ({reason})", path=self._path)):
            ids: list[int] = self.rust.encode(text, add_special_tokens=marked).ids
        return ids


def read_json(files: TokenizerFiles) -> TokenizerSource:
    """Raises `FormatError` for a damaged file, `UnsupportedError` for a tokenizer of other parts than ours."""
    path = files.folder / NAME
    tree = files.tree(NAME)
    _check_sizes(tree, path)
    with library_errors(lambda reason: FormatError(f"the tokenizers library cannot read it ({reason})", path=path)):
        rust = RustTokenizer.from_str(files.text(NAME) or "")
        rust.no_truncation()
        rust.no_padding()
        _check_ids(rust, tree, path)
        _add_tokens(rust, files)
        stages = {name: _state(rust, name) for name in ("normalizer", "pre_tokenizer", "post_processor", "decoder")}
        kind = type(rust.model).__name__
    for stage in ("normalizer", "pre_tokenizer"):
        unknown = unknown_steps(stage, stages[stage])
        if unknown:
            raise UnsupportedError(f"{path}: unknown {stage} {unknown[0]!r}")
    if kind not in MODELS:
        raise UnsupportedError(f"{path}: unknown model {kind!r}", known=MODELS)
    source = MODELS[kind](path, JsonOriginal(rust, path), tree["model"], stages)
    source.prefix, source.suffix = read_marks(path, stages["post_processor"])
    source.is_silent = is_silent(stages["post_processor"])
    _mark_added(source, rust)
    return source


def _check_sizes(tree: dict[str, Any], path: Path) -> None:
    """The library takes gigabytes for an added token of some megabytes, and does not stop."""
    added = tree.get("added_tokens") or []
    longest = max((str(token.get("content", "")) for token in added if isinstance(token, dict)), key=len, default="")
    if len(longest) > _LONGEST_ADDED:
        raise FormatError(
            f"adds a token of {len(longest)} characters, {longest[:20]!r}...; at most {_LONGEST_ADDED} make sense",
            path=path,
        )


def _state(rust: Any, name: str) -> Any:
    part = getattr(rust, name)
    return None if part is None else json.loads(part.__getstate__())


def _check_ids(rust: Any, tree: dict[str, Any], path: Path) -> None:
    """The library gives tokens other ids than the file where those do not follow one another."""
    for token in tree.get("added_tokens") or []:
        given = rust.token_to_id(token["content"])
        if given != token["id"]:
            raise FormatError(
                f"adds {token['content']!r} as {token['id']}, and the library has it as {given}", path=path
            )


def _add_tokens(rust: Any, files: TokenizerFiles) -> None:
    """Tokens that other files add, at the ids they name."""
    listed = files.tree("tokenizer_config.json").get("added_tokens_decoder", {})
    added = {int(i): entry for i, entry in listed.items()}
    added |= {i: {"content": text} for text, i in files.tree("added_tokens.json").items() if i not in added}
    known = rust.get_added_tokens_decoder()
    for i, entry in sorted(added.items()):
        flags = {name: bool(entry[name]) for name in ("lstrip", "rstrip", "single_word", "normalized") if name in entry}
        token = AddedToken(entry["content"], special=bool(entry.get("special", False)), **flags)
        if i in known and repr(known[i]) == repr(token):
            continue
        if i in known and "lstrip" not in entry:
            continue
        rust.add_tokens([token])
        if rust.token_to_id(token.content) != i:
            raise FormatError(
                f"adds {token.content!r} as {i}, and {NAME} has it as {rust.token_to_id(token.content)}",
                path=files.folder / "tokenizer_config.json",
            )


def _mark_added(source: TokenizerSource, rust: Any) -> None:
    for i, token in rust.get_added_tokens_decoder().items():
        known = source.tokens.get(i)
        if known is not None and token.content not in (known.text, library_spelling(known.text)):
            raise FormatError(f"id {i} stands for both {known.text!r} and {token.content!r}", path=source.path)
        flags = Flag.IN_MODEL if known is not None else Flag(0)
        flags |= Flag.LSTRIP if token.lstrip else Flag(0)
        flags |= Flag.RSTRIP if token.rstrip else Flag(0)
        flags |= Flag.SINGLE_WORD if token.single_word else Flag(0)
        flags |= Flag.NORMALIZED if token.normalized else Flag(0)
        is_control = token.special or token.content in SURE_ENDS
        kind = TokenType.CONTROL if is_control else TokenType.USER_DEFINED
        if i == source.unknown_id and source.ggml_model != "gpt2":
            kind = TokenType.UNKNOWN
        source.tokens[i] = Token(token.content, kind, known.score if known else 0.0, flags)
