"""`quantize`: a plan carried out, piece by piece."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from os import PathLike

from ...errors import ConfigError, FormatError, UnsupportedError
from ...formats import GGUFFile, GGUFWriter
from ...formats.named_path import named_path
from ...formats.new_file import check_place
from ...quant.bits import BeyondHalf
from ...quant.block import Bytes, Floats
from ...quant.bounds import first_unbounded
from ...runtime.golden.recording import leave_blank, record
from ..in_order import in_order
from .encoding import RowEncoder
from .plan import UNQUANTIZED, Plan, PlannedTensor

Progress = Callable[[str, int, int], None]
_log = logging.getLogger(__name__)

PIECE = 2**20
"""Weights at a time: small enough that a few for each thread are nothing beside a tensor."""


@dataclass(frozen=True)
class Piece:
    """Rows `start` to `stop` of a tensor, all of one expert."""

    tensor: PlannedTensor
    encoder: RowEncoder
    expert: int
    start: int
    stop: int

    @property
    def source_bytes(self) -> int:
        """Size in the source."""
        return (self.stop - self.start) * self.tensor.info.format.row_bytes(self.tensor.info.columns)


def quantize(
    file: GGUFFile,
    plan: Plan,
    path: str | PathLike[str],
    work: Iterable[tuple[PlannedTensor, RowEncoder]],
    *,
    threads: int = 1,
    progress: Progress | None = None,
) -> None:
    """Write the file that `plan` describes to `path`; the same bytes for any number of threads.

    `work` has every tensor of the plan with its encoder, in the order in which they are to be looked at.
    `progress("quantize", done, total)` counts bytes of the source; golden vectors come last, see `record`. Nothing is
    left behind where it fails. Raises `ConfigError` for NaN, infinity and weights beyond what the new format holds,
    naming tensor and row, and where `path` is the source; `ResourceError` where the disk is full.
    """
    check_target(file, path)
    total = sum(tensor.info.n_bytes for tensor in plan.tensors)
    done = 0
    with plan.writer(path) as writer:
        for piece, data in in_order(_pieces(work), partial(_new_bytes, file), threads, "quantize"):
            writer.write(piece.tensor.name, data)
            done += piece.source_bytes
            if progress is not None:
                progress("quantize", done, total)
        if plan.records:
            _record(writer, progress)


def _record(writer: GGUFWriter, progress: Progress | None) -> None:
    """The new formats may make a file that no longer runs, a vector in blocks for example: it was asked for."""
    try:
        record(writer, progress)
    except (FormatError, UnsupportedError) as error:
        _log.warning("the new file has no golden vectors, since it cannot be run: %s", error)
        leave_blank(writer)


def check_target(file: GGUFFile, path: str | PathLike[str]) -> None:
    """Raise `ConfigError` where a new file at `path` would replace what it is made from, or cannot be made."""
    target = named_path(path)
    check_place(target, "out")
    if any(target.exists() and target.samefile(part) for part in file.parts):
        raise ConfigError(f"{path}: is the source itself; give the new file another name", key="out")


def _pieces(work: Iterable[tuple[PlannedTensor, RowEncoder]]) -> Iterator[Piece]:
    """Tensors cut the same whoever computes them."""
    for tensor, encoder in work:
        rows_of_one = tensor.info.shape[1] if len(tensor.info.shape) > 2 else tensor.info.rows
        step = max(1, PIECE // tensor.info.columns)
        for expert in range(tensor.info.rows // rows_of_one):
            first, end = expert * rows_of_one, (expert + 1) * rows_of_one
            for start in range(first, end, step):
                yield Piece(tensor, encoder, expert, start, min(start + step, end))


def _new_bytes(file: GGUFFile, piece: Piece) -> Bytes:
    tensor = piece.tensor
    data = file.read_rows(tensor.name, piece.start, piece.stop)
    if not tensor.changes and tensor.info.format.name not in UNQUANTIZED:
        return data
    rows = tensor.info.format.decode(data)
    _refuse_unbounded(rows, piece)
    if not tensor.changes:
        return data
    try:
        encoded = piece.encoder.encode(tensor, piece.expert, rows)
    except BeyondHalf as error:
        row = piece.start + error.block * tensor.target.block_len // tensor.info.columns
        raise ConfigError(f"tensor {tensor.name!r}, row {row}: {error}") from error
    except ConfigError as error:
        raise ConfigError(f"tensor {tensor.name!r}: {error}", key=error.key) from error
    if tensor.target.name in UNQUANTIZED:
        _refuse_overflow(rows, encoded, piece)
    return encoded


def _refuse_overflow(rows: Floats, encoded: Bytes, piece: Piece) -> None:
    """Floats of 16 bits have an infinity, which what is too large becomes without a word."""
    format = piece.tensor.target
    place = first_unbounded(format.decode(encoded))
    if place is not None:
        wider = "bf16 or f32" if format.name == "f16" else "f32"
        raise ConfigError(
            f"{_found(rows, place, piece)}, beyond what {format.name} can hold: keep the tensor in {wider}"
        )


def _refuse_unbounded(rows: Floats, piece: Piece) -> None:
    place = first_unbounded(rows)
    if place is not None:
        raise ConfigError(
            f"{_found(rows, place, piece)}: the source is damaged, or its training diverged; nothing was written"
        )


def _found(rows: Floats, place: tuple[int, int], piece: Piece) -> str:
    row, column = place
    return f"tensor {piece.tensor.name!r} has {float(rows[place])!r} in row {piece.start + row}, column {column}"
