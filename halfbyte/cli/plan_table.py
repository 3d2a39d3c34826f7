"""A quantization plan as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import terminal

if TYPE_CHECKING:
    from ..tools.quantize.choices import Choices
    from ..tools.quantize.plan import Plan


def show_plan(plan: Plan, choices: Choices) -> None:
    """A line for each tensor, then the sums. An asterisk marks what its rows' length kept from the format wanted."""
    rows = [
        (
            tensor.name,
            " x ".join(map(str, tensor.info.shape)),
            tensor.info.format.name,
            f"{tensor.target.name}{'*' if tensor.fell_back else ''}",
            f"{tensor.n_bytes}",
        )
        for tensor in plan.tensors
    ]
    rows.insert(0, ("tensor", "shape", "is", "becomes", "bytes"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        name, shape, source, target, size = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        terminal.line(f"{name}  {shape}  {source}  {target}  {size.strip():>{widths[4]}}")
    fallbacks = [tensor for tensor in plan.tensors if tensor.fell_back]
    if fallbacks:
        wanted = ", ".join(sorted({tensor.wish for tensor in fallbacks}))
        terminal.line(f"* {len(fallbacks)} tensors have rows that do not divide into blocks of {wanted}")
    terminal.line(f"recipe           {choices.spelt()}")
    terminal.line(f"bits per weight  {plan.bits_per_weight:.3f}")
    terminal.line(f"file             {plan.file_bytes} bytes ({plan.file_bytes / 1e6:.1f} MB)")
