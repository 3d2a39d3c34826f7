"""`TensorInfo`: where one tensor lies and what its bytes mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from ..errors import UnsupportedError
from ..quant.block import BlockFormat
from ..quant.formats import by_id
from .cursor import CUT_SHORT, Cursor

MAX_TENSORS = 1 << 20
MAX_NAME_BYTES = 63
MAX_DIMS = 4
MAX_SIZE = (1 << 63) - 1

_SMALLEST_INFO = 8 + 1 + 4 + 4 + 8


@dataclass(frozen=True)
class TensorInfo:
    """`shape` in GGUF order: `shape[0]` runs fastest, so a weight [N, M] in row-major words has shape (M, N).

    `offset` counts bytes from the start of the file that is part `part` of the model (0 unless the model is split).
    """

    name: str
    format: BlockFormat
    shape: tuple[int, ...]
    offset: int
    n_bytes: int
    part: int = 0

    @property
    def columns(self) -> int:
        """Weights in a row."""
        return self.shape[0]

    @property
    def rows(self) -> int:
        """Product of all dimensions but the first."""
        return math.prod(self.shape[1:])

    @property
    def n_elements(self) -> int:
        """Weights in the tensor."""
        return math.prod(self.shape)


def read_tensor_infos(cursor: Cursor, count: int, alignment: int) -> dict[str, TensorInfo]:
    """Read and prove `count` tensor infos; offsets become absolute. Leaves the cursor where the data starts."""
    if count > MAX_TENSORS or count * _SMALLEST_INFO > cursor.left:
        raise cursor.error(f"the header promises {count} tensors, more than fit in it: {CUT_SHORT}")
    relative: dict[str, TensorInfo] = {}
    for index in range(count):
        at = cursor.position
        info = _read_info(cursor, index)
        if info.name in relative:
            raise cursor.error(f"tensor {info.name!r} occurs twice: the file is damaged", at)
        relative[info.name] = info
    data_start = -(-cursor.position // alignment) * alignment
    infos = [
        TensorInfo(info.name, info.format, info.shape, data_start + info.offset, info.n_bytes)
        for info in relative.values()
    ]
    _check_layout(cursor, infos, alignment, data_start)
    return {info.name: info for info in infos}


def _read_info(cursor: Cursor, index: int) -> TensorInfo:
    name = cursor.name(f"the name of tensor {index}", MAX_NAME_BYTES)
    what = f"tensor {name!r}"
    at = cursor.position
    n_dims = cursor.u32(f"the number of dimensions of {what}")
    if n_dims > MAX_DIMS:
        raise cursor.error(f"{what} has {n_dims} dimensions, at most {MAX_DIMS} are allowed: the file is damaged", at)
    # A tensor without dimensions is a single number; giving it one spares every reader a special case.
    shape = tuple(cursor.u64(f"dimension {axis} of {what}") for axis in range(n_dims)) or (1,)
    kind_at = cursor.position
    ggml_id = cursor.u32(f"the type of {what}")
    offset = cursor.u64(f"the offset of {what}")
    if min(shape) < 1 or math.prod(shape) > MAX_SIZE:
        raise cursor.error(f"{what} has the impossible shape {list(shape)}: the file is damaged", at)
    try:
        block = by_id(ggml_id)
    except UnsupportedError as error:
        refused = UnsupportedError(f"{cursor.path}: {what}: {error} (at byte {kind_at})")
        refused.known = error.known
        raise refused from None
    if shape[0] % block.block_len:
        reason = f"rows of {shape[0]}, which do not divide into {block.name} blocks of {block.block_len}"
        raise cursor.error(f"{what} has {reason}: the file is damaged", at)
    n_bytes = math.prod(shape) // block.block_len * block.block_bytes
    if n_bytes > MAX_SIZE:
        raise cursor.error(f"{what} has the impossible size of {n_bytes} bytes: the file is damaged", at)
    return TensorInfo(name, block, shape, offset, n_bytes)


def _check_layout(cursor: Cursor, infos: list[TensorInfo], alignment: int, data_start: int) -> None:
    """Every tensor aligned, inside the file and alone in its place."""
    outside = [info for info in infos if info.offset + info.n_bytes > cursor.size]
    if outside:
        needed = max(info.offset + info.n_bytes for info in outside)
        raise cursor.error(
            f"{len(outside)} of {len(infos)} tensors, {outside[0].name!r} first, reach past the end: the file has "
            f"{cursor.size} bytes and needs {needed}; it is cut short or damaged, fetch it again",
            outside[0].offset,
        )
    problems = [
        f"tensor {info.name!r} starts at byte {info.offset}, not at a multiple of {alignment}"
        for info in infos
        if (info.offset - data_start) % alignment
    ]
    in_order = sorted(infos, key=lambda info: info.offset)
    problems += [
        f"tensors {a.name!r} and {b.name!r} overlap at byte {b.offset}"
        for a, b in pairwise(in_order)
        if a.offset + a.n_bytes > b.offset
    ]
    if problems:
        more = f" and {len(problems) - 4} more problems" if len(problems) > 4 else ""
        raise cursor.error("; ".join(problems[:4]) + more + ": the file is damaged", data_start)
