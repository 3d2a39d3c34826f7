"""`write_tensors`: a conversion plan carried out, piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError
from ...quant.bits import BeyondHalf
from ...quant.bounds import first_unbounded
from ...quant.encoder import Search
from ..in_order import in_order
from .encoding import Encoded, Overflow, Unbounded, encode, encode_floats
from .piece import Piece, pieces_of
from .plan import ConversionPlan, PlannedTensor
from .report import ConversionReport, Loss
from .tensor_source import TensorSource
from .values import as_floats

Progress = Callable[[str, int, int], None]


class BeyondRange(Exception):
    """A tensor has weights that its new format cannot hold; never leaves the converter."""

    def __init__(self, tensor: PlannedTensor) -> None:
        super().__init__(tensor.name)
        self.tensor = tensor


class TensorWriter(Protocol):
    """Where bytes of tensors go."""

    def write(self, name: str, data: bytes | NDArray[Any]) -> None:
        """Append to a tensor."""


def write_tensors(
    plan: ConversionPlan,
    source: TensorSource,
    writer: TensorWriter,
    search: Search,
    *,
    threads: int = 1,
    progress: Progress | None = None,
) -> ConversionReport:
    """Make every tensor; the same bytes for any number of threads.

    `progress("convert", done, total)` counts bytes of the checkpoint. Raises `FormatError` for NaN and infinity,
    naming tensor and file, `BeyondRange` for what must be planned otherwise.
    """
    report = ConversionReport()
    for name, values in plan.computed.items():
        writer.write(name, values)
    pieces = [piece for tensor in plan.tensors for piece in pieces_of(tensor)]
    total, done = sum(piece.source_bytes for piece in pieces), 0
    for piece, (data, loss) in in_order(pieces, partial(make, source, search), threads, "convert"):
        writer.write(piece.tensor.name, data)
        report.add(piece.tensor.name, piece.tensor.format.name, loss)
        done += piece.source_bytes
        if progress is not None:
            progress("convert", done, total)
    return report


def make(source: TensorSource, search: Search, piece: Piece) -> Encoded:
    """The bytes of a piece, and what they lost."""
    tensor = piece.tensor
    stored, dtype, change = piece.stored(source), tensor.sources[0].dtype, tensor.rule.change
    if tensor.keeps_blocks:
        return stored, Loss()
    try:
        if change is None:
            return encode(stored, dtype, tensor.format, search)
        return encode_floats(stored, dtype, tensor.format, search, change)
    except Unbounded:
        raise _unbounded(piece, as_floats(stored, dtype)) from None
    except (BeyondHalf, Overflow):
        raise BeyondRange(tensor) from None


def _unbounded(piece: Piece, values: NDArray[np.float32]) -> FormatError:
    tensor = piece.tensor.sources[piece.matrix if piece.tensor.rule.stacked else 0]
    row, column = first_unbounded(values) or (0, 0)
    place = f"row {piece.source_row(row)}, column {column}"
    return FormatError(
        f"tensor {tensor.name!r} has {float(values[row, column])!r} in {place}: the checkpoint is damaged, or its "
        "training diverged; nothing was written",
        path=tensor.path,
    )


def beyond_half(plan: ConversionPlan, source: TensorSource) -> Iterator[str]:
    """Names of tensors with weights that a half, and so any format with scales that are halves, cannot hold."""
    for tensor in plan.tensors:
        if tensor.keeps_blocks or tensor.format.name in ("f32", "bf16"):
            continue
        for piece in pieces_of(tensor):
            values = as_floats(piece.stored(source), tensor.sources[0].dtype)
            if np.abs(values).max(initial=0) > np.finfo(np.float16).max:
                yield tensor.name
                break
