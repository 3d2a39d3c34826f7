"""`gather`: all parts of a model that is split over several files."""

from __future__ import annotations

import re

from ..errors import FormatError, HalfbyteError
from .part import Part, open_part

NAME = re.compile(r"(?P<prefix>.*)-(?P<no>\d{5})-of-(?P<count>\d{5})\.gguf", re.DOTALL)
NO, COUNT, TENSORS = "split.no", "split.count", "split.tensors.count"
ARCHITECTURE = "general.architecture"
_SHOWN = 8


def split_count(part: Part) -> int:
    """Number of files the model consists of. A merged file keeps the key with the value 0."""
    return max(1, _number(part, COUNT, 0))


def gather(known: Part) -> list[Part]:
    """The parts in order, found beside `known` by name and checked against each other.

    Raises one `FormatError` that names every missing, unreadable or contradicting part.
    """
    count = split_count(known)
    match = NAME.fullmatch(known.path.name)
    if match is None or int(match["count"]) != count:
        wanted = f"PREFIX-{_number(known, NO, 0) + 1:05d}-of-{count:05d}.gguf"
        message = f"this is one of {count} parts; name it {wanted} so that the others are found"
        raise FormatError(message, path=known.path)
    names = [f"{match['prefix']}-{i + 1:05d}-of-{count:05d}.gguf" for i in range(count)]
    parts, problems = _open_all(known, names)
    if not problems:
        problems = [*_contradictions(parts), *_doubled(parts)]
    if problems:
        more = f" and {len(problems) - _SHOWN} more problems" if len(problems) > _SHOWN else ""
        listing = "; ".join(problems[:_SHOWN]) + more
        raise FormatError(f"the model is split into {count} files and not complete: {listing}", path=known.path)
    return parts


def _open_all(known: Part, names: list[str]) -> tuple[list[Part], list[str]]:
    folder = known.path.parent
    parts: list[Part] = []
    problems = [f"part {i + 1} ({name}) is missing" for i, name in enumerate(names) if not (folder / name).exists()]
    for path in (folder / name for name in names if (folder / name).exists()):
        try:
            parts.append(known if path.name == known.path.name else open_part(path))
        except HalfbyteError as error:
            problems.append(str(error))
    return parts, problems


def _contradictions(parts: list[Part]) -> list[str]:
    problems: list[str] = []
    first = parts[0]
    architecture = first.metadata.values.get(ARCHITECTURE)
    for i, part in enumerate(parts):
        no, count = _number(part, NO, -1), _number(part, COUNT, 0)
        if (no, count) != (i, len(parts)):
            problems.append(f"{part.path.name} says it is part {no + 1} of {count}")
        other = part.metadata.values.get(ARCHITECTURE, architecture)
        if other != architecture:
            problems.append(f"{part.path.name} is of architecture {other!r}, the first part of {architecture!r}")
    total = sum(len(part.tensors) for part in parts)
    promised = _number(first, TENSORS, total)
    if promised != total:
        problems.append(f"the parts hold {total} tensors, {TENSORS} says {promised}")
    return problems


def _doubled(parts: list[Part]) -> list[str]:
    problems: list[str] = []
    seen: dict[str, Part] = {}
    for part in parts:
        for name in part.tensors:
            if name in seen:
                problems.append(f"tensor {name!r} is both in {seen[name].path.name} and in {part.path.name}")
            seen[name] = part
    return problems


def _number(part: Part, key: str, default: int) -> int:
    value = part.metadata.values.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < min(default, 0):
        raise FormatError(f"{key} is {value!r}, not a count: the file is damaged", path=part.path)
    return value
