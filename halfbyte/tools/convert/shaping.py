"""`Shape`: what a rule makes of the shape of its sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import FormatError
from ...model.checkpoint import Choice, TensorRule
from .tensor_source import SourceTensor


@dataclass(frozen=True)
class Shape:
    """`dims` row-major: [N], [N, M] or [E, N, M]. `source_rows` and `source_columns` are those of one source matrix."""

    dims: tuple[int, ...]
    matrices: int
    source_rows: int
    source_columns: int

    @property
    def rows(self) -> int:
        """Of one matrix; a vector counts as a column."""
        return self.dims[-2] if len(self.dims) > 1 else self.dims[0]

    @property
    def columns(self) -> int:
        """Of one matrix."""
        return self.dims[-1] if len(self.dims) > 1 else 1


def shape_of(rule: TensorRule, sources: Sequence[SourceTensor]) -> Shape:
    """Raises `FormatError` for sources that the rule does not fit."""
    plain = [_squeezed(tensor.shape) for tensor in sources]
    first = plain[0]
    odd = next((tensor for tensor, dims in zip(sources, plain, strict=True) if dims != first), None)
    if odd is not None:
        raise FormatError(
            f"tensor {odd.name!r} has shape {list(odd.shape)}, {sources[0].name!r} {list(sources[0].shape)}: "
            "experts must be alike",
            path=odd.path,
        )
    most = 1 if rule.stacked and len(first) == 1 else 2 if rule.stacked else 3
    if not 1 <= len(first) <= most or min(first) < 1:
        raise FormatError(f"tensor {sources[0].name!r} cannot have shape {list(first)}", path=sources[0].path)
    matrices = len(sources) if rule.stacked else first[0] if len(first) == 3 else 1
    inner = first[1:] if len(first) == 3 else first
    if rule.transposed and len(inner) > 1:
        inner = inner[::-1]
    rows, columns = inner if len(inner) > 1 else (inner[0], 1)
    n, m = _chosen(rule.rows, rows, sources[0]), _chosen(rule.columns, columns, sources[0])
    dims = (n, m) if len(inner) > 1 else (n,)
    if rule.stacked or len(first) == 3:
        dims = (matrices, *dims)
    return Shape(dims, matrices, rows, columns)


def _chosen(choice: Choice | None, size: int, tensor: SourceTensor) -> int:
    try:
        return size if choice is None else len(choice(size))
    except ValueError:  # rows that do not divide into heads
        raise FormatError(
            f"tensor {tensor.name!r} has shape {list(tensor.shape)}, whose {size} rows or columns do not divide as the "
            "config says",
            path=tensor.path,
        ) from None


def _squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    if not shape:
        return (1,)
    return tuple(size for size in shape if size != 1) or (1,) if len(shape) > 2 else shape
