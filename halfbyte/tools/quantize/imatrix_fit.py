"""Whether an importance matrix is of the model that is quantized with it."""

from __future__ import annotations

from ...errors import FormatError
from ...formats import GGUFFile, TensorInfo
from .imatrix import ImportanceMatrix


def check_fits(matrix: ImportanceMatrix, file: GGUFFile) -> None:
    """Raise `FormatError` unless every entry that `file` has a tensor for has its shape, and there is one at least.

    Entries of tensors that the file lacks may be there: it can be part of a larger model, or a head that it shares.
    """
    known = [info for name, info in file.tensors.items() if name in matrix]
    if not known:
        first = next(iter(matrix.entries), "nothing")
        raise FormatError(
            f"has {first!r} and the like, but no tensor of {file.path}: the importance matrix is another model's",
            path=matrix.path,
        )
    for info in known:
        found, wanted = len(matrix.importance(info.name, info.columns)), experts_of(info)
        if found not in (1, wanted):
            raise FormatError(
                f"{info.name!r} has {found} experts here and {wanted} in the model: the importance matrix is another "
                "model's",
                path=matrix.path,
            )


def experts_of(info: TensorInfo) -> int:
    """How many matrices a tensor stacks."""
    return info.rows // info.shape[1] if len(info.shape) > 2 else 1
