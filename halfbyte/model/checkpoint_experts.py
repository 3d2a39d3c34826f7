"""From a checkpoint's experts to the keys and tensors of a GGUF file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .checkpoint import TensorRule
from .checkpoint_config import CheckpointConfig
from .decoder_checkpoint import MAX_EXPERTS, block_count, rename

_COUNTS = ("num_local_experts", "num_experts")


@dataclass(frozen=True)
class ExpertNames:
    """Stems of a layer's tensors: what gives the scores, what the experts are under, and the matrices of each."""

    router: str
    experts: str
    gate: str
    up: str
    down: str


def expert_count(config: CheckpointConfig) -> int:
    """Experts of a layer; configs have two names for it."""
    key = next((key for key in _COUNTS if config.has(key)), _COUNTS[0])
    return config.integer(key, high=MAX_EXPERTS)


def expert_metadata(config: CheckpointConfig) -> dict[str, object]:
    """How many there are and how many see a token."""
    return {"expert_count": expert_count(config), "expert_used_count": config.integer("num_experts_per_tok")}


def expert_rules(
    config: CheckpointConfig, names: ExpertNames, layers: Iterable[int] | None = None, *, prefix: str = "model."
) -> list[TensorRule]:
    """Rules for the experts of `layers`, all of them if not given: checkpoints have each expert's matrices apart."""
    count = expert_count(config)
    rules = []
    for i in range(block_count(config)) if layers is None else layers:
        at, to = f"{prefix}layers.{i}", f"blk.{i}"
        rules.append(rename(f"{at}.{names.router}.weight", f"{to}.ffn_gate_inp.weight"))
        for target, source in (("gate", names.gate), ("up", names.up), ("down", names.down)):
            sources = tuple(f"{at}.{names.experts}.{expert}.{source}.weight" for expert in range(count))
            rules.append(TensorRule(f"{to}.ffn_{target}_exps.weight", sources, stacked=True))
    return rules
