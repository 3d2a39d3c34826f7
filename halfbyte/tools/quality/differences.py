"""What two files are not alike in, beside their formats."""

from __future__ import annotations

from ...formats import GGUFFile, StringArray
from .vocabulary import token_difference

SHOWN = 3


def differences(a: GGUFFile, b: GGUFFile) -> list[str]:
    """A line for each thing that keeps two files from being the same model in other formats."""
    names = [str(file.metadata.get("general.architecture", "none")) for file in (a, b)]
    found = []
    if names[0] != names[1]:
        found.append(f"architecture: {names[0]} and {names[1]}")
    context = [file.metadata.get(f"{name}.context_length") for file, name in zip((a, b), names, strict=True)]
    if context[0] != context[1]:
        found.append(f"context length: {context[0]} and {context[1]} tokens")
    tokens = token_difference(_tokens(a), _tokens(b))
    if tokens:
        found.append(f"vocabulary: {tokens}")
    return found + _tensors(a, b)


def _tokens(file: GGUFFile) -> list[str]:
    tokens = file.metadata.get("tokenizer.ggml.tokens")
    return tokens.tolist() if isinstance(tokens, StringArray) else []


def _tensors(a: GGUFFile, b: GGUFFile) -> list[str]:
    only_a = [name for name in a.tensors if name not in b.tensors]
    only_b = [name for name in b.tensors if name not in a.tensors]
    shapes = [name for name, info in a.tensors.items() if name in b.tensors and b.tensors[name].shape != info.shape]
    named = (("tensors only in A", only_a), ("tensors only in B", only_b), ("tensors of other shapes", shapes))
    return [f"{what}: {_listed(names)}" for what, names in named if names]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
