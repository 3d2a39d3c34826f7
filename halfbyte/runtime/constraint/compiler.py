"""`Compiler`: constraints to grammars over one model's vocabulary, each compiled once."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...errors import ConfigError
from .grammar import Grammar
from .keywords import check_keywords
from .wish import Constraint

if TYPE_CHECKING:
    from ...text import Tokenizer

MOST_GRAMMARS = 64
COMPACT: Any = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": ", "lenient": False}
"""One way to write an object: what is no choice is not computed, and no answer is lost in endless spaces."""


class Compiler:
    """Any thread may ask it. llguidance and its view of the vocabulary are made when the first constraint comes."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._lock = threading.Lock()
        self._known: OrderedDict[Constraint, Grammar] = OrderedDict()

    def compile(self, constraint: Constraint) -> Grammar:
        """Raises `ConfigError` for what is no grammar, `UnsupportedError` for a keyword that is not understood."""
        with self._lock:
            found = self._known.pop(constraint, None) or self._compile(constraint)
            self._known[constraint] = found
            if len(self._known) > MOST_GRAMMARS:
                self._known.popitem(last=False)
        return found

    def _compile(self, constraint: Constraint) -> Grammar:
        import llguidance

        vocabulary = self._vocabulary
        text = SOURCES[constraint.kind](constraint)
        matcher = llguidance.LLMatcher(vocabulary, text, log_level=0)
        problem = matcher.get_error() if matcher.is_error() else ""
        if not problem:
            return Grammar(constraint, matcher, self._beside)
        key = "grammar" if constraint.kind == "lark" else constraint.kind
        raise ConfigError(f"{key} cannot be understood: {_first_lines(problem)}", key=key)

    @cached_property
    def _vocabulary(self) -> Any:
        from .vocabulary import view

        return view(self._tokenizer)

    @cached_property
    def _beside(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1, "halfbyte-masks")


def _schema(constraint: Constraint) -> str:
    import llguidance

    check_keywords(json.loads(constraint.source))
    try:
        return str(llguidance.LLMatcher.grammar_from_json_schema(constraint.source, overrides=COMPACT))
    except ValueError as error:
        raise ConfigError(f"schema cannot be understood: {error}", key="schema") from None


def _choices(constraint: Constraint) -> str:
    import llguidance

    texts = (json.dumps(text) for text in json.loads(constraint.source))
    return str(llguidance.LLMatcher.grammar_from_lark("start: " + " | ".join(texts)))


def _grammar(constraint: Constraint) -> str:
    import llguidance
    from llguidance.gbnf_to_lark import any_to_lark

    try:
        lark = any_to_lark(constraint.source)
    except Exception as error:  # its own errors, and those of malformed numbers and names
        raise ConfigError(f"grammar is not GBNF: {error}", key="grammar") from None
    return str(llguidance.LLMatcher.grammar_from_lark(lark))


def _regex(constraint: Constraint) -> str:
    import llguidance

    return str(llguidance.LLMatcher.grammar_from_regex(constraint.source))


def _lark(constraint: Constraint) -> str:
    import llguidance

    return str(llguidance.LLMatcher.grammar_from_lark(constraint.source))


SOURCES: dict[str, Callable[[Constraint], str]] = {
    "schema": _schema,
    "choices": _choices,
    "grammar": _grammar,
    "regex": _regex,
    "lark": _lark,
}


def _first_lines(problem: str) -> str:
    lines = [line.strip() for line in problem.splitlines() if line.strip()]
    return "; ".join(lines[:4])[:400]
