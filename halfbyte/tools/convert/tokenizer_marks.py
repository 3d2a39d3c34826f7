"""`read_marks`: the tokens that a post-processor puts before and after a text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...errors import UnsupportedError
from .tokenizer_files import TokenizerFiles


def read_marks(path: Path, tree: Any) -> tuple[list[int], list[int]]:
    """Ids before and after, from the JSON of a post-processor; raises `UnsupportedError` for one with other effects."""
    kind = tree.get("type") if isinstance(tree, dict) else None
    if tree is None or kind == "ByteLevel":
        return [], []
    if kind == "Sequence":
        before: list[int] = []
        after: list[int] = []
        for step in tree["processors"]:
            inner = read_marks(path, step)
            before, after = inner[0] + before, after + inner[1]
        return before, after
    if kind in ("BertProcessing", "RobertaProcessing"):
        return [tree["cls"][1]], [tree["sep"][1]]
    if kind == "TemplateProcessing":
        return _template(path, tree)
    raise UnsupportedError(
        f"{path}: unknown post-processor {kind!r}",
        known=("ByteLevel", "BertProcessing", "RobertaProcessing", "TemplateProcessing", "Sequence"),
    )


def is_silent(tree: Any) -> bool:
    """Whether a post-processor leaves open what stands at the ends, so that flags of other files count."""
    kind = tree.get("type") if isinstance(tree, dict) else None
    if kind == "Sequence":
        return all(map(is_silent, tree["processors"]))
    return tree is None or kind == "ByteLevel"


def marks_by_flags(
    files: TokenizerFiles, marks: tuple[list[int], list[int]], bos: int | None, eos: int | None
) -> tuple[list[int], list[int]]:
    """The same with what `tokenizer_config.json` says of either end."""
    config = files.tree("tokenizer_config.json")
    found = []
    for flag, ids, token in (("add_bos_token", marks[0], bos), ("add_eos_token", marks[1], eos)):
        wanted = config.get(flag)
        if not isinstance(wanted, bool) or (wanted and ids):
            found.append(ids)
        else:
            found.append([token] if wanted and token is not None else [])
    return found[0], found[1]


def _template(path: Path, tree: Any) -> tuple[list[int], list[int]]:
    parts: list[list[int]] = [[]]
    for piece in tree["single"]:
        if "Sequence" in piece:
            parts.append([])
        else:
            parts[-1] += tree["special_tokens"][piece["SpecialToken"]["id"]]["ids"]
    if len(parts) != 2:
        raise UnsupportedError(f"{path}: the post-processor's template holds the text {len(parts) - 1} times, not once")
    return parts[0], parts[1]
