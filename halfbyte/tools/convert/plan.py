"""`ConversionPlan`: every tensor of the file that will be, and what it is made of."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ...errors import FormatError
from ...formats import Typed
from ...model.checkpoint import Checkpoint, Floats, TensorRule
from ...model.checkpoint_config import CheckpointConfig
from ...quant import FORMATS, BlockFormat
from ...quant.assign import fitting, wishes_for
from ...quant.recipe import Recipe
from ..quantize.facts import facts_from
from .shaping import Shape, shape_of
from .tensor_source import SourceTensor, TensorSource
from .tied import is_tied_twin
from .values import check_is_weight

LOSSLESS = "mxfp4"
"""Of this format blocks are taken over as they are."""
_SHOWN = 12


@dataclass(frozen=True)
class PlannedTensor:
    """One tensor of the file: from `sources` of the checkpoint by `rule`, in `shape`, written as `format`."""

    name: str
    rule: TensorRule
    sources: tuple[SourceTensor, ...]
    shape: Shape
    format: BlockFormat

    @property
    def n_weights(self) -> int:
        """Numbers in it."""
        return math.prod(self.shape.dims)

    @property
    def n_bytes(self) -> int:
        """Size in the file."""
        return self.n_weights // self.format.block_len * self.format.block_bytes

    @property
    def keeps_blocks(self) -> bool:
        """Whether it is quantized in the checkpoint as it will be in the file."""
        return self.format.name == LOSSLESS and self.sources[0].dtype == "MXFP4"


@dataclass(frozen=True)
class ConversionPlan:
    """`computed` are tensors that no weights go into, always float32."""

    tensors: tuple[PlannedTensor, ...]
    computed: Mapping[str, Floats]
    metadata: Mapping[str, object]

    @property
    def n_weights(self) -> int:
        """Numbers in all tensors that come from the checkpoint."""
        return sum(tensor.n_weights for tensor in self.tensors)

    @property
    def tensor_bytes(self) -> int:
        """Size of all tensors in the file."""
        return sum(tensor.n_bytes for tensor in self.tensors) + sum(4 * t.size for t in self.computed.values())


def plan_tensors(
    checkpoint: Checkpoint, config: CheckpointConfig, source: TensorSource, recipe: Recipe, metadata: dict[str, object]
) -> ConversionPlan:
    """Find the sources of every tensor. `metadata` are all of the file, and get the recipe's.

    Raises one `FormatError` for all tensors that are missing, one for all that nobody uses.
    """
    rules, computed = checkpoint.tensors(config), checkpoint.computed(config)
    config.raise_problems()
    _refuse_unused(rules, source, checkpoint)
    found = _found(rules, source, config)
    shapes = {rule.target: shape_of(rule, sources) for rule, sources in found}
    formats = _formats(found, shapes, recipe, metadata)
    tensors = [
        PlannedTensor(rule.target, rule, sources, shapes[rule.target], formats[rule.target]) for rule, sources in found
    ]
    quantized = any(tensor.format.block_len > 1 for tensor in tensors)
    about = {"general.file_type": Typed(recipe.file_type, "u32")}
    if quantized:
        about["general.quantization_version"] = Typed(2, "u32")
    return ConversionPlan(tuple(tensors), computed, metadata | about)


def widened(plan: ConversionPlan, names: Collection[str]) -> ConversionPlan:
    """The same with these tensors in a format that holds all that their sources do."""
    tensors = [
        replace(tensor, format=FORMATS["bf16" if tensor.sources[0].dtype == "BF16" else "f32"])
        if tensor.name in names
        else tensor
        for tensor in plan.tensors
    ]
    return replace(plan, tensors=tuple(tensors))


Found = Sequence[tuple[TensorRule, tuple[SourceTensor, ...]]]


def _found(rules: Sequence[TensorRule], source: TensorSource, config: CheckpointConfig) -> Found:
    missing: list[str] = []
    found = []
    for rule in rules:
        absent = [name for name in rule.sources if name not in source.tensors]
        if not absent:
            sources = tuple(source.tensors[name] for name in rule.sources)
            for tensor in sources:
                check_is_weight(tensor)
            if not is_tied_twin(rule, rules, source, config):
                found.append((_as_stored(rule, sources), sources))
        elif not rule.optional:
            missing += absent
    if missing:
        folder = config.path.parent
        raise FormatError(f"{len(missing)} tensors are missing: {_listed(missing)}. Fetch it again", path=folder)
    return found


def _as_stored(rule: TensorRule, sources: Sequence[SourceTensor]) -> TensorRule:
    """Blocks lie along the rows of a matrix, whichever way round the same matrix lies when it is not quantized."""
    return replace(rule, transposed=False) if all(tensor.dtype == "MXFP4" for tensor in sources) else rule


def _refuse_unused(rules: Sequence[TensorRule], source: TensorSource, checkpoint: Checkpoint) -> None:
    used = {name for rule in rules for name in rule.sources}
    known = [re.compile(pattern) for pattern in checkpoint.unused]
    unused = [name for name in source.tensors if name not in used and not any(each.fullmatch(name) for each in known)]
    if unused:
        path = source.tensors[unused[0]].path
        raise FormatError(
            f"{len(unused)} tensors of the checkpoint have no place in this architecture: {_listed(unused)}. It is a "
            "variant that we do not know; converting it without them would change its answers",
            path=path,
        )


def _formats(
    found: Found, shapes: Mapping[str, Shape], recipe: Recipe, metadata: Mapping[str, object]
) -> dict[str, BlockFormat]:
    """The recipe's, float32 for what no recipe touches, and blocks that are quantized already as they are."""
    gguf_shapes = {name: shape.dims[::-1] for name, shape in shapes.items()}
    arch = str(metadata["general.architecture"])
    wishes = wishes_for(recipe, gguf_shapes, facts_from(metadata, arch))
    formats = {}
    for rule, sources in found:
        name, wish = rule.target, wishes.get(rule.target, "f32")
        lossless = all(tensor.dtype == "MXFP4" for tensor in sources) and rule.columns is None
        formats[name] = FORMATS[LOSSLESS] if lossless else fitting(wish, gguf_shapes[name][0])
    return formats


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
