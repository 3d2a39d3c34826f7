"""`Adapter`: a LoRA file, proven to fit a program: some matrices W are meant to be `W + scale * B @ A`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..errors import FormatError, UnsupportedError, nearest
from ..formats import GGUFFile, TensorInfo
from ..quant import FORMATS
from .backend import Weight
from .op_rules import Shape
from .program import Embed, ExpertLinear, Linear, Program
from .row_range import row_range
from .weights import tensor_shapes

SUFFIXES = (".lora_a", ".lora_b")
_PLAIN = ("f32", "f16", "bf16")
_SHOWN = 12
_MOST_ALPHA = 1e30


@dataclass(frozen=True)
class LowRank:
    """What is added to a matrix [N, M]: `factor` times `b` [N, r] times `a` [r, M]. In memory, not in the file."""

    a: Weight
    b: Weight
    factor: float


@dataclass(frozen=True)
class Adapter:
    """Pairs by the name of the tensor they change."""

    pairs: dict[str, LowRank]


def read_adapter(file: GGUFFile, architecture: str, program: Program) -> Adapter:
    """What a file as llama.cpp writes them changes of a program.

    Raises one `FormatError` for all tensors that do not fit the model, and for what is no adapter of its architecture;
    `UnsupportedError` for adapters of other kinds and of embeddings and experts.
    """
    alpha = _alpha(file, architecture)
    wanted = tensor_shapes(program)
    bases = list(dict.fromkeys(name[:-7] for name in file.tensors if name.endswith(SUFFIXES)))
    problems = [f"{name} is neither .lora_a nor .lora_b" for name in file.tensors if not name.endswith(SUFFIXES)]
    problems += [text for base in bases for text in _problems(file, base, wanted)]
    if not file.tensors:
        problems = ["it has no tensors"]
    if problems:
        more = [f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
        raise FormatError(
            f"the adapter does not fit this model: {'; '.join(problems[:_SHOWN] + more)}. Make it for this model",
            path=file.path,
        )
    _check_supported(file, bases, program)
    return Adapter({base: _pair(file, base, alpha) for base in bases})


def _alpha(file: GGUFFile, architecture: str) -> float:
    """`adapter.lora.alpha` of a file that is an adapter; 0 where it has none."""
    given = file.metadata
    if given.get("general.type") != "adapter":
        raise FormatError(f"general.type is {given.get('general.type')!r}, not 'adapter'", path=file.path)
    if given.get("adapter.type") != "lora":
        raise UnsupportedError(f"{file.path}: an adapter of type {given.get('adapter.type')!r}", known=["lora"])
    if "adapter.alora.invocation_tokens" in given:
        raise UnsupportedError(f"{file.path}: an adapter that only tokens behind an invocation are to go through")
    theirs = given.get("general.architecture")
    if theirs != architecture:
        raise FormatError(f"an adapter of {theirs!r}, and the model is {architecture!r}", path=file.path)
    alpha = given.get("adapter.lora.alpha", 0.0)
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not abs(alpha) <= _MOST_ALPHA:
        raise FormatError(f"adapter.lora.alpha is {alpha!r}, not a finite number that float32 has", path=file.path)
    return float(alpha)


def _problems(file: GGUFFile, base: str, wanted: dict[str, Shape]) -> Iterator[str]:
    if base not in wanted:
        yield f"{base} is none of the model's tensors{nearest(base, wanted)}"
        return
    a, b = (file.tensors.get(base + suffix) for suffix in SUFFIXES)
    if a is None or b is None:
        yield f"{base} has no {SUFFIXES[0] if a is None else SUFFIXES[1]}"
        return
    if len(a.shape) > 2 or len(b.shape) > 2:  # of experts, which `_check_supported` names
        return
    (n, m), rank = wanted[base], a.rows
    if rank < 1 or (a.columns, b.columns, b.rows) != (m, rank, n):
        yield f"{base} is [{n}, {m}], .lora_a is {_shown(a)} and .lora_b {_shown(b)}, not [r, {m}] and [{n}, r]"
        return
    for info in (a, b):
        if not _holds_numbers(info):
            yield f"{info.name} is {info.format.name}"
        elif not np.isfinite(info.format.decode(file.read_rows(info.name, 0, info.rows))).all():
            yield f"{info.name} holds numbers that are not finite"


def _shown(info: TensorInfo) -> str:
    return str([info.rows, info.columns])


def _holds_numbers(info: TensorInfo) -> bool:
    return not (info.format.name[0] == "i" and info.format.name[1:].isdigit())


def _check_supported(file: GGUFFile, bases: list[str], program: Program) -> None:
    tables = {op.table for op in program.ops if isinstance(op, Embed)}
    experts = {op.weight for op in program.ops if isinstance(op, ExpertLinear)}
    matrices = {row_range(op.weight).tensor for op in program.ops if isinstance(op, Linear)}
    for base in bases:
        what = "the embedding" if base in tables else "experts" if base in experts else "no matrix"
        if base in tables | experts or base not in matrices:
            raise UnsupportedError(
                f"{file.path}: it changes {base}, which is {what}: merge the adapter into the model, or train one "
                "without"
            )


def _pair(file: GGUFFile, base: str, alpha: float) -> LowRank:
    a, b = (_weight(file, base + suffix) for suffix in SUFFIXES)
    return LowRank(a, b, alpha / a.shape[0] if alpha else 1.0)


def _weight(file: GGUFFile, name: str) -> Weight:
    """A copy: an adapter is small, and its file may go."""
    info = file.tensors[name]
    weight = Weight(name, info.format, (info.rows, info.columns), file.read_rows(name, 0, info.rows))
    if info.format.name in _PLAIN:
        return weight
    return replace(weight, format=FORMATS["f32"], data=weight.decode().view(np.uint8))
