"""`DeviceBytes`: what the parts of a program take on a device, before anything is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..model.backend import Place, Weight
from ..model.kv_types import KvTypes
from ..model.program import Combine, KvWrite, MoeRoute, Program
from .families import packed_bytes
from .packing import matrices_of

MOST_LOGITS = 512
"""Rows of logits in a step, about."""


@dataclass(frozen=True)
class DeviceBytes:
    """Each weight, keys and values of each KV layer, and the buffers of a step."""

    weights: Mapping[str, int]
    kv: Sequence[int]
    buffers: int

    def of(self, program: Program, places: Sequence[Place]) -> int:
        """Those of the ops on the GPU."""
        ops = [op for op, place in zip(program.ops, places, strict=True) if place == "gpu"]
        weights = {name for op in ops for name in op.weights()}
        layers = {op.layer for op in ops if isinstance(op, KvWrite)}
        kv = sum(self.kv[layer] for layer in layers)
        return sum(self.weights[name] for name in weights) + kv + (self.buffers if ops else 0)


def device_bytes(
    program: Program, weights: Mapping[str, Weight], *, kv: KvTypes, slots: int, max_tokens: int
) -> DeviceBytes:
    """For `slots` tokens of keys and values and steps of `max_tokens`; buffers are guessed, and rather too large."""
    experts = matrices_of(program)
    return DeviceBytes(
        weights={
            name: packed_bytes(weights[name], experts[name]) if name in experts else 4 * _numbers(weights[name])
            for name in program.weight_names()
        },
        kv=[
            slots * layer.kv_heads * kv.of(layer).token_bytes(layer.key_size, layer.value_size)
            for layer in program.kv_layers
        ],
        buffers=_buffers(program, weights, max_tokens),
    )


def _buffers(program: Program, weights: Mapping[str, Weight], max_tokens: int) -> int:
    """Values of the widest layer as floats and as halves, its largest matrix as halves, and logits.

    The head is multiplied with few tokens, which no halves are needed for.
    """
    rows: dict[str, int] = {}
    widest: dict[str, int] = {}
    for op in program.ops:
        used = op.used if isinstance(op, MoeRoute) else max((rows.get(name, 1) for name in op.reads()), default=1)
        for name in op.writes():
            rows[name] = 1 if isinstance(op, Combine) else used
            layer = name.rpartition(".")[0]
            if layer:
                widest[layer] = widest.get(layer, 0) + rows[name] * program.widths[name]
    of_layers = {name: n for name, n in matrices_of(program).items() if weights[name].shape[0] != program.vocab_size}
    matrices = [_numbers(weights[name]) // n for name, n in of_layers.items()]
    values = max_tokens * max(widest.values(), default=0)
    return 6 * values + 2 * max(matrices, default=0) + 4 * program.vocab_size * min(max_tokens, MOST_LOGITS)


def _numbers(weight: Weight) -> int:
    return weight.shape[0] * weight.shape[1]
