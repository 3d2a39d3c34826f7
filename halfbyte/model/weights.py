"""From the tensors of a file to the weights of a program."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from ..errors import FormatError, UnsupportedError
from ..formats import GGUFFile
from .backend import Weight
from .check import weight_shapes
from .op_rules import Shape
from .program import Program
from .read_spec import TOKEN_TYPES
from .row_range import row_range

_log = logging.getLogger(__name__)
_SHOWN = 12
_NUMBERS = ("f32", "f16", "bf16")
_TABLES = (TOKEN_TYPES,)
"""A program may do without some of their rows."""
_PARTS = ("token_embd", "token_embd_norm", "output_norm", "output", "rope_freqs", "rope_factors_long")
_HARMLESS = re.compile(r".*\.(attn_rot_embd|rope_freqs)\.weight")


def collect_weights(gguf: GGUFFile, program: Program, also_used: Iterable[str] = ()) -> dict[str, Weight]:
    """Every weight the program reads, as views of the mapped file. Raises what `check_weights` does."""
    check_weights(gguf, program, also_used)
    return {name: _weight(gguf, name, shape) for name, shape in weight_shapes(program).items()}


def check_weights(gguf: GGUFFile, program: Program, also_used: Iterable[str] = ()) -> None:
    """Raise one `FormatError` for all weights that are missing or of the wrong shape.

    And `UnsupportedError` where the file has tensors the program leaves out although they would change its answers;
    those in `also_used` went into it already.
    """
    problems = [text for name, shape in tensor_shapes(program).items() for text in _problems(gguf, name, shape)]
    if problems:
        more = [f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
        listing = "; ".join(problems[:_SHOWN] + more)
        raise FormatError(
            f"tensors do not fit the metadata: {listing}. Fetch or convert the file again", path=gguf.path
        )
    _look_at_unused(gguf, program, also_used)


def _weight(gguf: GGUFFile, name: str, shape: Shape) -> Weight:
    part = row_range(name)
    info, data = gguf.tensors[part.tensor], gguf.tensor_data(part.tensor)
    if part.stop is not None and part.of_bias:
        size = data.shape[1] // info.columns
        data = data[:, size * part.start : size * part.stop]
    elif part.stop is not None:
        data = data[part.start : part.stop]
    return Weight(name, info.format, shape, data)


def tensor_shapes(program: Program) -> dict[str, Shape]:
    """(N, M) of each tensor that a program reads: of one that is used in parts, all of them together."""
    wanted: dict[str, Shape] = {}
    for name, (rows, columns) in weight_shapes(program).items():
        part = row_range(name)
        if part.stop is not None:
            before = wanted.get(part.tensor, (0, 0))
            if part.of_bias:
                columns = max(part.stop, before[1])
            else:
                rows = max(part.stop, before[0])
        wanted[part.tensor] = (rows, columns)
    return wanted


def _problems(gguf: GGUFFile, name: str, shape: Shape) -> list[str]:
    info = gguf.tensors.get(name)
    rows, columns = shape
    if info is None:
        return [f"{name} is missing"]
    wanted = [columns] if rows == 1 else [columns, rows]
    enough = info.rows >= rows if name in _TABLES else info.rows == rows
    if info.columns != columns or not enough:
        return [f"{name} is {list(info.shape)}, not {wanted}"]
    if info.format.name[0] == "i" and info.format.name[1:].isdigit():
        return [f"{name} holds integers ({info.format.name}), not weights"]
    # A vector is added or multiplied as it is: no backend unpacks blocks for it.
    if rows == 1 and info.format.name not in _NUMBERS:
        return [f"{name} is {info.format.name}, a vector must be one of {', '.join(_NUMBERS)}"]
    return []


def _look_at_unused(gguf: GGUFFile, program: Program, also_used: Iterable[str]) -> None:
    used = {*also_used, *(row_range(name).tensor for name in program.weight_names())}
    unused = [name for name in gguf.tensors if name not in used]
    layers = len(program.kv_layers)
    wanted = [name for name in unused if _changes_answers(name, layers)]
    if wanted:
        names = ", ".join(wanted[:_SHOWN]) + (f" and {len(wanted) - _SHOWN} more" if len(wanted) > _SHOWN else "")
        raise UnsupportedError(f"{gguf.path}: this variant of the architecture is not supported, it also has {names}")
    if unused:
        _log.info("%s: %d tensors are not used: %s", gguf.path, len(unused), ", ".join(unused[:_SHOWN]))


def _changes_answers(name: str, n_layers: int) -> bool:
    """Whether a tensor that the program leaves out belongs to something that it computes.

    Layers past the last (draft heads) and whole parts of their own (vision, pooling) leave the logits as they are.
    """
    if _HARMLESS.fullmatch(name):
        return False
    layer = re.match(r"blk\.(\d+)\.", name)
    if layer:
        return int(layer[1]) < n_layers
    return name.partition(".")[0] in _PARTS
