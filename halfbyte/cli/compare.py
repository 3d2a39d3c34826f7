"""`halfbyte compare`: two model files side by side."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import terminal
from .command import Argument, Command, Option
from .json_text import json_text
from .model import locate
from .options import FILE, JSON, MODEL_FORMS, THREADS, WINDOW
from .perplexity import as_json, measured
from .progress import Bar
from .text_file import read_text

if TYPE_CHECKING:
    from ..tools.quality.figures import Figures
    from ..tools.quality.inventory import Inventory
    from ..tools.quality.tensor_error import TensorError

A = Argument("A", f"the model that counts as right: {MODEL_FORMS}")
B = Argument("B", "the model compared with it, in the same forms")
TENSORS = Option("--tensors", bool, "List how far every tensor of B is from that of A")


def run(values: Namespace) -> int:
    """Look into both files, measure where a text is given, and print."""
    text = None if values.file is None else read_text(values.file)
    paths = (locate(values.a), locate(values.b))
    inventories, unlike, errors = _look(paths, values.tensors)
    figures = None if text is None else measured(values, text, paths[1], paths[0])
    if values.json:
        terminal.line(json_text(_as_json(inventories, unlike, errors, figures)))
    else:
        _show(inventories, unlike, figures)
        if errors is not None:
            _show_errors(errors)
    return 0


def _look(paths: tuple[Path, Path], tensors: bool) -> tuple[list[Inventory], list[str], list[TensorError] | None]:
    from ..formats import open_gguf
    from ..tools.quality.differences import differences
    from ..tools.quality.inventory import take_inventory
    from ..tools.quality.tensor_error import tensor_errors

    with open_gguf(paths[0]) as a, open_gguf(paths[1]) as b, Bar() as bar:
        errors = list(tensor_errors(a, b, bar)) if tensors else None
        return [take_inventory(a), take_inventory(b)], differences(a, b), errors


def _as_json(
    inventories: list[Inventory], unlike: list[str], errors: list[TensorError] | None, figures: Figures | None
) -> dict[str, Any]:
    found: dict[str, Any] = {name: _facts(each) for name, each in zip("ab", inventories, strict=True)}
    found["differences"] = unlike
    if figures is not None and figures.divergence is not None:
        far = figures.divergence
        found["a"] |= {"perplexity": far.base_perplexity, "perplexity_se": far.base_perplexity_se}
        found["b"] |= {name: value for name, value in as_json(figures).items() if name != "base_perplexity"}
    if errors is not None:
        found["tensors"] = [asdict(error) for error in errors]
    return found


def _facts(inventory: Inventory) -> dict[str, Any]:
    total = inventory.total
    return {
        **asdict(inventory),
        "weights": total.weights,
        "tensor_bytes": total.bytes,
        "bits_per_weight": inventory.bits_per_weight,
    }


def _show(inventories: list[Inventory], unlike: list[str], figures: Figures | None) -> None:
    rows = [("", "A", "B")]
    rows += [_row(title, [show(each) for each in inventories]) for title, show in SHOWN.items()]
    names = dict.fromkeys(name for each in inventories for name in each.formats)
    rows += [_row(f"in {name}", [_share(each, name) for each in inventories]) for name in names]
    rows += [] if figures is None else _figures(figures)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        terminal.line("  ".join(cells).rstrip())
    for line in unlike:
        terminal.line(f"differs: {line}")


def _row(title: str, cells: list[str]) -> tuple[str, str, str]:
    return title, cells[0], cells[1]


SHOWN: dict[str, Callable[[Inventory], str]] = {
    "file": lambda each: Path(each.path).name,
    "size": lambda each: f"{each.file_bytes / 1e6:.1f} MB",
    "weights": lambda each: f"{each.total.weights / 1e6:.1f} M",
    "bits per weight": lambda each: f"{each.bits_per_weight:.3f}",
}


def _share(inventory: Inventory, name: str) -> str:
    share = inventory.formats.get(name)
    return "-" if share is None else f"{share.bytes / 1e6:.1f} MB, {share.tensors} tensors"


def _figures(figures: Figures) -> list[tuple[str, str, str]]:
    far = figures.divergence
    assert far is not None
    a, b = far.base_perplexity, figures.perplexity
    return [
        ("perplexity", f"{a:.4f} +- {far.base_perplexity_se:.4f}", f"{b:.4f} +- {figures.perplexity_se:.4f}"),
        ("mean KL divergence", "", f"{far.mean_kld:.6f} +- {far.mean_kld_se:.6f} nats"),
        ("median", "", f"{far.median_kld:.6f} nats"),
        ("99th percentile", "", f"{far.p99_kld:.6f} nats"),
        ("maximum", "", f"{far.max_kld:.6f} nats"),
        ("same likeliest token", "", f"{100 * far.top1:.2f} %"),
    ]


def _show_errors(errors: list[TensorError]) -> None:
    terminal.line("\nRelative squared error of the tensors of B")
    names = max((len(error.name) for error in errors), default=0)
    for error in errors:
        shown = "not a number" if error.error is None else f"{error.error:.3e}"
        terminal.line(f"  {error.name:<{names}}  {error.format_a:>7} -> {error.format_b:<7}  {shown}")


COMMAND = Command(
    "compare",
    about="Show two model files side by side: sizes, bits per weight and formats; with --file also the perplexity of "
    "both on a text and how far the probabilities of B are from those of A.",
    example="halfbyte compare smollm2-135m smollm2-135m --tensors",
    run=run,
    arguments=(A, B),
    options=(FILE, WINDOW, TENSORS, THREADS, JSON),
)
