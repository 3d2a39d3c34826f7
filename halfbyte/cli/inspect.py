"""`halfbyte inspect`: what is inside a model file."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from . import terminal
from .command import Command, Option
from .json_text import json_text
from .model import locate
from .options import JSON, MODEL

if TYPE_CHECKING:
    from ..formats import GGUFFile

SHOWN_ITEMS = 4
SHOWN_CHARACTERS = 70

TENSORS = Option("--tensors", bool, "List every tensor too")


def run(values: Namespace) -> int:
    """Show metadata, sizes by type and, if asked for, tensors; the architecture need not be known."""
    from ..formats import open_gguf

    with open_gguf(locate(values.model)) as file:
        if values.json:
            terminal.line(json_text(_facts(file, values.tensors)))
        else:
            _show(file, values.tensors)
    return 0


def _facts(file: GGUFFile, tensors: bool) -> dict[str, Any]:
    from ..tools.quality.inventory import take_inventory

    inventory = take_inventory(file)
    facts: dict[str, Any] = {
        "path": str(file.path),
        "parts": [str(part) for part in file.parts],
        "version": file.version,
        "file_bytes": inventory.file_bytes,
        "weights": inventory.total.weights,
        "tensor_bytes": inventory.total.bytes,
        "bits_per_weight": inventory.bits_per_weight,
        "types": {name: asdict(share) for name, share in inventory.formats.items()},
        "metadata": {key: _plain(value) for key, value in file.metadata.items()},
    }
    if tensors:
        facts["tensors"] = [
            {"name": info.name, "type": info.format.name, "shape": list(info.shape), "bytes": info.n_bytes}
            for info in file.tensors.values()
        ]
    return facts


def _plain(value: object) -> Any:
    """A value for JSON: arrays as their length and first items, numbers that JSON lacks as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return _printable(value)
    return {"length": _length(value), "first": [_plain(item) for item in _first(value)]}


def _first(value: Any) -> list[object]:
    return [item.item() if hasattr(item, "item") else item for item in value[:SHOWN_ITEMS]]


def _length(value: Any) -> int:
    return len(value)


def _printable(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _shown(value: object) -> str:
    if isinstance(value, str):
        text = repr(_printable(value))
        return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}... ({len(value)} characters)"
    if isinstance(value, bool | int | float):
        return f"{value:.7g}" if isinstance(value, float) else str(value)
    items = [_shown(item) for item in _first(value)]
    more = ", ..." if _length(value) > SHOWN_ITEMS else ""
    return f"[{', '.join(items)}{more}] ({_length(value)} items)"


def _show(file: GGUFFile, tensors: bool) -> None:
    facts = _facts(file, tensors=False)
    parts = f" in {len(file.parts)} parts" if len(file.parts) > 1 else ""
    terminal.line(f"{file.path}: GGUF version {file.version}, {facts['file_bytes'] / 1e6:.1f} MB{parts}")
    terminal.line(
        f"{len(file.tensors)} tensors, {facts['weights'] / 1e6:.1f} M weights, "
        f"{facts['bits_per_weight']:.2f} bits per weight"
    )
    terminal.line("\nMetadata")
    _columns([(key, _shown(value)) for key, value in file.metadata.items()])
    terminal.line("\nSizes by type")
    rows = [
        (name, f"{row['tensors']} tensors", f"{row['weights'] / 1e6:.2f} M weights", f"{row['bytes'] / 1e6:.2f} MB")
        for name, row in facts["types"].items()
    ]
    _columns(rows)
    if tensors:
        terminal.line("\nTensors")
        infos = file.tensors.values()
        _columns([(i.name, i.format.name, " x ".join(map(str, i.shape)), f"{i.n_bytes} bytes") for i in infos])


def _columns(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        terminal.line(("  " + "  ".join(cells)).rstrip())


COMMAND = Command(
    "inspect",
    about="Show the metadata of a model file, its size by tensor type and its bits per weight.",
    example="halfbyte inspect smollm2-135m --tensors",
    run=run,
    arguments=(MODEL,),
    options=(TENSORS, JSON),
)
