"""`pre_name`: the well-known name of a pre-tokenizer, for readers that go by names."""

from __future__ import annotations

from typing import Any

from ...text.pre_tokenizers import PRE_TOKENIZERS
from ...text.stages import steps

_DEFAULT = "default"
_GPT2 = PRE_TOKENIZERS["gpt-2"].patterns
_BEST_KNOWN = ("gpt-2", "llama-bpe", "qwen2", "smollm", "starcoder", "tekken", "deepseek-v3", "gpt-4o")


def pre_name(normalizer: Any, pre_tokenizer: Any, ignore_merges: bool) -> str:
    """The name under which the same patterns stand in our table, "default" where they do not."""
    patterns = _patterns(pre_tokenizer)
    names = (*_BEST_KNOWN, *PRE_TOKENIZERS)
    same = [name for name in names if PRE_TOKENIZERS[name].patterns == patterns]
    exact = [name for name in same if PRE_TOKENIZERS[name].ignore_merges == ignore_merges]
    return (exact or same or [_DEFAULT])[0]


def _patterns(pre_tokenizer: Any) -> tuple[str, ...]:
    """Patterns that cut as the stage does, none where no list of them can."""
    patterns: list[str] = []
    for step in steps("pre_tokenizer", pre_tokenizer):
        found = _pattern(step)
        if found is None:
            return ()
        patterns += found
    return tuple(patterns)


def _pattern(step: dict[str, Any]) -> list[str] | None:
    if step["type"] == "ByteLevel":
        return list(_GPT2) if step["use_regex"] else []
    if step["type"] == "Digits":
        return [r"\p{N}" if step["individual_digits"] else r"\p{N}+"]
    if step["type"] == "Split":
        pattern = step["pattern"].get("Regex")
        isolates = step["behavior"] == "Isolated" and not step["invert"]
        removes_rest = step["behavior"] == "Removed" and step["invert"]
        return [pattern] if pattern and (isolates or removes_rest) else None
    return None
