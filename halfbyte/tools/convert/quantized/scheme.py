"""`Scheme`: how a config of compressed-tensors says that some modules are quantized."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ....errors import FormatError
from ....model.checkpoint_config import CheckpointConfig
from .fp8 import block_size

_REGEX = "re:"


@dataclass(frozen=True)
class Scheme:
    """`blocks`: rows and columns that share a scale, none where whole rows do. `targets`: names, patterns, classes."""

    bits: int
    blocks: tuple[int, ...]
    targets: tuple[str, ...]


def schemes_of(config: CheckpointConfig) -> list[Scheme]:
    """Those of `config_groups` that quantize weights. Raises `FormatError` for settings that make no sense."""
    groups = config.section("config_groups")
    found = []
    for key in groups.given:
        group = groups.section(key)
        if not group.has("weights"):
            continue
        args = group.section("weights")
        size = args.integer("group_size", -1, low=-1)
        blocks = block_size(args, "block_structure") or ((1, size) if size > 0 else ())
        targets = tuple(group.texts("targets"))
        for target in targets:
            _check_pattern(group, target)
        found.append(Scheme(args.integer("num_bits", 8, high=16), blocks, targets))
    config.raise_problems()
    return found


def _check_pattern(group: CheckpointConfig, target: str) -> None:
    if target.startswith(_REGEX):
        try:
            re.compile(target.removeprefix(_REGEX))
        except re.error as error:
            group.problem(f"{group.prefix}targets", f"holds {target!r:.60}, which is no pattern ({error})")


def scheme_for(module: str, schemes: Sequence[Scheme], config: CheckpointConfig) -> Scheme:
    """The one that names the module, else the first that names a class of modules."""
    for scheme in schemes:
        if any(_names(target, module) for target in scheme.targets):
            return scheme
    for scheme in schemes:
        if any(target[:1].isupper() for target in scheme.targets):
            return scheme
    raise FormatError(
        f"{config.prefix}config_groups does not say how {module!r} is quantized, but its tensors are", path=config.path
    )


def _names(target: str, module: str) -> bool:
    if target.startswith(_REGEX):
        return re.match(target.removeprefix(_REGEX), module) is not None
    return target == module
