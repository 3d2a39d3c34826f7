"""What the name of a GGUF file tells: parts of a split set, and the quantization."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errors import ConfigError, nearest

SPLIT = re.compile(r"(?P<stem>.+)-(?P<no>\d{5})-of-(?P<count>\d{5})\.gguf", re.IGNORECASE)

PREFERRED = ("q4_k_m", "q4_k_s", "q4_1", "q4_0", "q5_k_m", "q5_k_s", "q6_k", "q8_0", "iq4_xs", "q3_k_m", "bf16", "f16")
"""Order of choice where only a repository is named: good answers per byte first."""


def choose(names: Sequence[str], wanted: str, where: str) -> list[str]:
    """The .gguf files meant by `wanted` (a file name, a quantization, or nothing), all parts of a split set in order.

    Raises `ConfigError` listing what there is.
    """
    models = sorted(name for name in names if _is_model(name))
    if not models:
        raise ConfigError(f"{where} holds no .gguf file; look for a repository whose name ends in GGUF")
    sets = _sets(models)
    if wanted:
        return sets[_named(sets, wanted, where)]
    for quant in PREFERRED:
        fitting = [key for key in sets if _has_quant(key, quant)]
        if fitting:
            return sets[fitting[0]]
    return sets[next(iter(sets))]


def _is_model(name: str) -> bool:
    *folders, base = name.lower().split("/")
    # Vision projectors and importance matrices carry the same suffix.
    return ".." not in folders and base.endswith(".gguf") and not base.startswith("mmproj") and "imatrix" not in base


def _sets(models: Sequence[str]) -> dict[str, list[str]]:
    sets: dict[str, list[str]] = {}
    for name in models:
        match = SPLIT.fullmatch(name)
        sets.setdefault(f"{match['stem']}.gguf" if match else name, []).append(name)
    return sets


def _named(sets: dict[str, list[str]], wanted: str, where: str) -> str:
    low = wanted.lower()
    for key, parts in sets.items():
        names = [key, *parts]
        if low in {name.lower() for name in names} | {name.rpartition("/")[2].lower() for name in names}:
            return key
    fitting = [key for key in sets if _has_quant(key, low)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise ConfigError(f"{where} holds several files for {wanted!r}; name one: {', '.join(fitting)}")
    hint = nearest(wanted, sets)
    raise ConfigError(f"{where} holds no file or quantization {wanted!r}{hint}; it has: {', '.join(sets)}")


def _has_quant(name: str, quant: str) -> bool:
    stem = name.lower().removesuffix(".gguf")
    return re.search(rf"(^|[-._/]){re.escape(quant)}($|[-._/])", stem) is not None
