"""`DeviceBytes`: what the parts of a program take on a device, before anything is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..model.backend import Place, Stage, Weight
from ..model.kv_types import KvTypes
from ..model.program import KvWrite, Program
from .device import Device
from .families import family_of, packed_bytes
from .kv_layout import kv_layout
from .lower import Target
from .modes import lower_modes
from .packing import PackedMatrix, matrices_of


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
    program: Program,
    weights: Mapping[str, Weight],
    device: Device,
    *,
    kv: KvTypes,
    n_pages: int,
    context: int,
    max_tokens: int,
    max_seqs: int,
) -> DeviceBytes:
    """For steps as `executable.build` has them; buffers are those of the whole program, more than a share's."""
    experts = matrices_of(program)
    layout = kv_layout(program.kv_layers, kv)
    target = Target(device.multiprocessors, device.shared_bytes, context, layout.page_bytes, layout)
    packed = {name: _unplaced(weights[name], count) for name, count in experts.items()}
    modes = lower_modes(program, [Stage(0, len(program.ops))], packed, target, max_tokens, max_seqs)
    return DeviceBytes(
        weights={
            name: packed_bytes(weights[name], experts[name]) if name in experts else 4 * _numbers(weights[name])
            for name in program.weight_names()
        },
        kv=[n_pages * kv_layout((layer,), kv).page_bytes for layer in program.kv_layers],
        buffers=modes.n_bytes,
    )


def _unplaced(weight: Weight, experts: int) -> PackedMatrix:
    rows, columns = weight.shape
    return PackedMatrix(weight.name, family_of(weight), rows // experts, columns, experts, address=0)


def _numbers(weight: Weight) -> int:
    return weight.shape[0] * weight.shape[1]
