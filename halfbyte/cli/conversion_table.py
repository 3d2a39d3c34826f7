"""A conversion plan as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import terminal

if TYPE_CHECKING:
    from ..tools.convert.conversion import Conversion
    from ..tools.convert.plan import PlannedTensor


def show_conversion(conversion: Conversion) -> None:
    """A line for each tensor, then the sums."""
    plan = conversion.plan
    rows = [("tensor", "shape", "of", "is", "becomes", "bytes")]
    rows += [
        (
            tensor.name,
            " x ".join(map(str, tensor.shape.dims[::-1])),
            _sources(tensor),
            tensor.sources[0].dtype.lower(),
            tensor.format.name,
            str(tensor.n_bytes),
        )
        for tensor in plan.tensors
    ]
    rows += [
        (name, " x ".join(map(str, values.shape[::-1])), "config.json", "-", "f32", str(4 * values.size))
        for name, values in plan.computed.items()
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        *cells, size = row
        line = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=False))
        terminal.line(f"{line}  {size:>{widths[-1]}}")
    terminal.line(f"architecture  {conversion.arch} ({conversion.folder.class_name})")
    terminal.line(f"recipe        {conversion.recipe.name}")
    terminal.line(f"weights       {plan.n_weights}")
    terminal.line(f"tensors       {plan.tensor_bytes} bytes ({plan.tensor_bytes / 1e6:.1f} MB)")


def _sources(tensor: PlannedTensor) -> str:
    first, *others = tensor.sources
    return f"{first.name} and {len(others)} more" if others else first.name
