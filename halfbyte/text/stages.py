"""`build_stages`: a normalizer and a pre-tokenizer from their JSON, which may come from a hostile file.

The forms are those of `tokenizer.json`. The library parses them; what it would take without a bound is refused before.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from tokenizers import Tokenizer as RustTokenizer

from ..errors import FormatError
from .library_errors import library_errors
from .rules import RULES, Rules

CHARSMAP = "tokenizer.ggml.precompiled_charsmap"

NORMALIZERS = (
    *("NFC", "NFD", "NFKC", "NFKD", "Nmt", "Lowercase", "StripAccents", "Strip", "BertNormalizer", "ByteLevel"),
    *("Prepend", "Replace", "Precompiled"),
)
PRE_TOKENIZERS = (
    *("ByteLevel", "Split", "Digits", "Punctuation", "Whitespace", "WhitespaceSplit", "Metaspace"),
    *("BertPreTokenizer", "CharDelimiterSplit", "UnicodeScripts"),
)
_PARTS = {"normalizer": ("normalizers", NORMALIZERS), "pre_tokenizer": ("pretokenizers", PRE_TOKENIZERS)}
_MAX_STEPS = 64
_MAX_GROWTH = 256
"""How many times as long as a text its normal form may be; expanding ligatures takes 18."""


def steps(stage: str, tree: Any) -> Iterator[dict[str, Any]]:
    """The steps of a "normalizer" or "pre_tokenizer" in order, sequences opened; raises `FormatError`."""
    listed, _ = _PARTS[stage]
    if tree is None:
        return
    if not isinstance(tree, dict) or not isinstance(tree.get("type"), str):
        raise FormatError(f"{stage}: a step is no object with a type: {repr(tree)[:80]}")
    if tree["type"] != "Sequence":
        yield tree
        return
    if not isinstance(tree.get(listed), list):
        raise FormatError(f"{stage}: a Sequence has no list of {listed}")
    for part in tree[listed]:
        yield from steps(stage, part)


def unknown_steps(stage: str, tree: Any) -> list[str]:
    """Types of the steps that we do not know to be safe and exact."""
    return [step["type"] for step in steps(stage, tree) if step["type"] not in _PARTS[stage][1]]


def build_stages(rules: Rules, charsmap: bytes) -> tuple[Any, Any]:
    """The library's normalizer and pre-tokenizer, each None where there is none. Raises `FormatError`."""
    trees = {"normalizer": rules.normalizer, "pre_tokenizer": rules.pre_tokenizer}
    for stage, tree in trees.items():
        try:
            _check(stage, tree)
        except RecursionError:
            raise _damaged(f"{stage}: is nested too deeply") from None
        except FormatError as error:
            raise _damaged(str(error)) from None
    trees["normalizer"] = _with_charsmap(rules.normalizer, charsmap)
    with library_errors(_damaged):
        rust = RustTokenizer.from_str(
            json.dumps(
                {"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "vocab": {}, "merges": []}, **trees}
            )
        )
        normalizer, pre_tokenizer = rust.normalizer, rust.pre_tokenizer
        # Some faults show at the first text only.
        if normalizer is not None:
            normalizer.normalize_str("a")
        if pre_tokenizer is not None:
            pre_tokenizer.pre_tokenize_str("a")
    return normalizer, pre_tokenizer


def inner_pre_tokenizer(tree: Any) -> Any:
    """The same for text that is not the first: a Metaspace that marks the first word only marks none of it."""
    if isinstance(tree, dict):
        inner = {name: inner_pre_tokenizer(value) for name, value in tree.items()}
        return inner | {"prepend_scheme": "never"} if inner.get("prepend_scheme") == "first" else inner
    return [inner_pre_tokenizer(item) for item in tree] if isinstance(tree, list) else tree


def _check(stage: str, tree: Any) -> None:
    unknown = unknown_steps(stage, tree)
    if unknown:
        raise FormatError(f"{stage}: holds the unknown step {unknown[0]!r}")
    found = list(steps(stage, tree))
    if len(found) > _MAX_STEPS:
        raise FormatError(f"{stage}: has {len(found)} steps, and {_MAX_STEPS} are the most")
    growth = 1.0
    for step in found if stage == "normalizer" else []:
        growth *= _growth(step)
        if growth > _MAX_GROWTH:
            raise FormatError(f"{stage}: makes a text more than {_MAX_GROWTH} times as long")


def _growth(step: dict[str, Any]) -> float:
    pattern, content = step.get("pattern"), step.get("content")
    if step["type"] != "Replace" or not isinstance(content, str) or not isinstance(pattern, dict):
        return 1
    found = pattern.get("String")
    # A regular expression can match between all characters.
    return max(1.0, len(content) / len(found)) if isinstance(found, str) and found else 1.0 + len(content)


def _with_charsmap(tree: Any, charsmap: bytes) -> Any:
    if isinstance(tree, list):
        return [_with_charsmap(item, charsmap) for item in tree]
    if not isinstance(tree, dict):
        return tree
    filled = {name: _with_charsmap(value, charsmap) for name, value in tree.items()}
    if filled.get("type") == "Precompiled":
        filled["precompiled_charsmap"] = b64encode(charsmap).decode()
    return filled


def _damaged(reason: str) -> FormatError:
    return FormatError(
        f"{RULES}normalizer and pre_tokenizer: cannot be built ({reason}); fetch or convert the file again"
    )
