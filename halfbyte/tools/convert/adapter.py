"""`convert_adapter`: a PEFT folder becomes an adapter file, as llama.cpp reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...errors import ConfigError, FormatError, UnsupportedError
from ...formats import GGUFWriter, Typed
from ...model.archs import ARCHS, CLASSES
from ...model.checkpoint import TensorRule
from ...quant import FORMATS
from .checkpoint_folder import CheckpointFolder
from .peft_adapter import Pair, PeftAdapter
from .target import check_metadata, check_target
from .values import Floats

FILE_TYPES = {"f32": 0, "f16": 1, "bf16": 32}
_SHOWN = 8


@dataclass(frozen=True)
class _Change:
    """What is added to a tensor of the model; `scaling` is what `b @ a` has to be multiplied by."""

    target: str
    a: Floats
    b: Floats
    scaling: float

    @property
    def alpha(self) -> float:
        """With which a reader, who divides by the rank, scales as it should."""
        return self.scaling * len(self.a)


def convert_adapter(
    folder: Path, base: Path | None, out: Path, *, type: str = "f16", metadata: Mapping[str, object] | None = None
) -> None:
    """Write the adapter in `folder` as `out`; `base` is the folder of its checkpoint, of which `config.json` is read.

    None is where the adapter says that it lies. `type` is f32, f16 or bf16. Raises `UnsupportedError` for what is not
    plain LoRA of matrices that models multiply by, with all names, `FormatError` for damage, `ConfigError`.
    """
    if type not in FILE_TYPES:
        raise ConfigError(f"an adapter is written as {', '.join(FILE_TYPES)}, not {type!r}", key="type")
    check_target(out, (folder,))
    check_metadata(metadata or {})
    adapter = PeftAdapter(folder)
    checkpoint = CheckpointFolder(_base(adapter, base))
    name = checkpoint.class_name
    if name not in CLASSES:
        raise UnsupportedError(f"{checkpoint.config.path}: unknown architecture {name!r}", known=sorted(CLASSES))
    rules = ARCHS[CLASSES[name]].checkpoint.tensors(checkpoint.config)
    checkpoint.config.raise_problems()
    adapter.check_copies(checkpoint.tensors)
    changes = list(_changes(adapter, rules))
    alpha = _alpha(changes, adapter.config.alpha)
    pairs = {
        "general.type": "adapter",
        "general.architecture": CLASSES[name],
        "general.name": folder.resolve().name,
        "general.file_type": Typed(FILE_TYPES[type], "u32"),
        "adapter.type": "lora",
        "adapter.lora.alpha": Typed(alpha, "f32"),
    }
    _write(out, pairs | dict(metadata or {}), changes, alpha, type)


def _base(adapter: PeftAdapter, given: Path | None) -> Path:
    if given is not None:
        return given
    name = adapter.config.base
    for place in [] if name is None else [Path(name), adapter.folder / name]:
        if place.is_dir():
            return place
    raise ConfigError(
        f"{adapter.folder}: its base model is {name!r}, which is no folder here; say where its config.json is (--base)",
        key="base",
    )


def _changes(adapter: PeftAdapter, rules: Sequence[TensorRule]) -> Iterator[_Change]:
    """Pairs by tensors of the model: several may have parts of one weight."""
    by_source: dict[str, list[TensorRule]] = {}
    for rule in rules:
        for source in rule.sources:
            by_source.setdefault(source, []).append(rule)
    unknown = [name for name in adapter.pairs if name not in by_source]
    if unknown:
        raise FormatError(
            f"{len(unknown)} weights are none of the base model's: {_listed(unknown)}", path=adapter.folder
        )
    odd = [name for name in adapter.pairs if not all(map(_is_plain, by_source[name]))]
    if odd:
        raise UnsupportedError(
            f"{adapter.folder}: {_listed(odd)}: experts, and matrices that are kept otherwise than multiplied, have no "
            "adapters; merge it into the model (--merge-lora)"
        )
    for name, pair in adapter.pairs.items():
        yield from (_change(adapter, pair, rule) for rule in by_source[name])


def _is_plain(rule: TensorRule) -> bool:
    return not (rule.stacked or rule.transposed or rule.change) and rule.target.endswith(".weight")


def _change(adapter: PeftAdapter, pair: Pair, rule: TensorRule) -> _Change:
    """In the order of rows and columns that the model has."""
    try:
        b = pair.b if rule.rows is None else pair.b[rule.rows(len(pair.b))]
        a = pair.a if rule.columns is None else pair.a[:, rule.columns(pair.a.shape[1])]
    except (ValueError, IndexError) as error:
        raise FormatError(f"{pair.weight} is not of the base model's size: {error}", path=adapter.folder) from error
    return _Change(rule.target, a, b, pair.scaling)


def _alpha(changes: Sequence[_Change], usual: float) -> float:
    """One for all where they agree; else the usual one, and B makes up for the difference."""
    alphas = {change.alpha for change in changes}
    alpha = alphas.pop() if len(alphas) == 1 else usual
    if alpha == 0:  # which readers take for 'no alpha'
        return 1.0
    return alpha


def _write(out: Path, metadata: dict[str, object], changes: Sequence[_Change], alpha: float, type: str) -> None:
    tensors: dict[str, tuple[Floats, str]] = {}
    for change in changes:
        ratio = change.alpha / alpha
        b = change.b if ratio == 1 else change.b * np.float32(ratio)
        for name, values in ((f"{change.target}.lora_a", change.a), (f"{change.target}.lora_b", b)):
            beyond = type == "f16" and values.size > 0 and float(np.abs(values).max()) > np.finfo(np.float16).max
            tensors[name] = np.ascontiguousarray(values), "f32" if beyond else type
    with GGUFWriter(out, metadata) as writer:
        for name, (values, format) in tensors.items():
            writer.declare(name, FORMATS[format], values.shape[::-1])
        for name, (values, format) in tensors.items():
            writer.write(name, FORMATS[format].encode(values))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
