"""`Assembly`: everything of a share that lies on the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..model.backend import Progress, Stage, Weight
from ..model.kv_types import KvTypes
from ..model.program import AddScaled, ExpertLinear, Linear, MoeRoute, Program
from .constants import Constants
from .device import Buffer, Device
from .groups import Group, Kind
from .kv_pages import KvPages
from .lower import Target
from .mode import Lowered, Mode
from .modes import BYTES_PROMPT, largest_step, lower_modes, room
from .packing import matrices_of, pack_all
from .peaks import PEAKS
from .place import Addresses
from .step_image import Capacity, StepImage

KINDS: tuple[Kind, ...] = ("decode", "prompt")


class Assembly:
    """Weights, pages, buffers and calls of a share."""

    def __init__(
        self,
        program: Program,
        stages: tuple[Stage, ...],
        weights: Mapping[str, Weight],
        device: Device,
        n_pages: int,
        max_tokens: int,
        max_seqs: int,
        context: int,
        kv: KvTypes,
        progress: Progress | None,
    ) -> None:
        self.program, self.stages, self.device, self.n_pages = program, stages, device, n_pages
        self.most = largest_step(program, max_tokens, max_seqs)
        experts = matrices_of(program)
        self._matrices = {name: weights[name] for name in experts}
        packed = pack_all(self._matrices, device, progress, experts)
        self._buffers: list[Buffer] = [matrix.buffer for matrix in packed.values() if matrix.buffer]
        # Calls refer to matrices and to each other, and live until somebody collects garbage: they hold no memory.
        self.packed = {name: replace(matrix, buffer=None) for name, matrix in packed.items()}
        self.pages = KvPages(device, program.kv_layers, n_pages, kv)
        layout = self.pages.layout
        target = Target(device.multiprocessors, device.shared_bytes, context, layout.page_bytes, layout)
        modes = lower_modes(program, stages, self.packed, target, max_tokens, max_seqs)
        device.load(set().union(*(one.kernels() for one in modes)), progress)
        self._constants = Constants(device, (call for one in modes for call in one.calls()), weights)
        adapters = 1 + max((op.adapter for op in program.ops if isinstance(op, AddScaled)), default=-1)
        capacity = Capacity(max_tokens, self.most.sequences, max(n_pages, -(-context // 16)), adapters)
        self.steps: dict[Kind, StepImage] = {kind: StepImage(device, capacity) for kind in KINDS}
        memory = self._memory([modes.decode])
        self.decode = self._mode(modes.decode, self.steps["decode"], memory)
        memory = self._memory(modes.prompts)
        self._prompts = [self._mode(one, self.steps["prompt"], memory) for one in modes.prompts]
        self.leaving = [self._made(stage) for stage in stages]
        self.facts = self._facts()
        """For people."""

    def _memory(self, lowered: Sequence[Lowered]) -> tuple[int, int]:
        """Room for the values and the scratch of modes that never run at the same time; scratch begins as zeros."""
        value_bytes, n_bytes = room(lowered)
        values, scratch = self._allocate(value_bytes), self._allocate(n_bytes)
        zeros = np.zeros(min(n_bytes, 1 << 24), np.uint8)
        for at in range(0, n_bytes, max(1, len(zeros))):
            self.device.copy_in(scratch + at, zeros[: n_bytes - at])
        self.device.synchronize()
        return values, scratch

    def _allocate(self, n_bytes: int) -> int:
        self._buffers.append(self.device.allocate(n_bytes))
        return self._buffers[-1].address

    def _mode(self, lowered: Lowered, step: StepImage, memory: tuple[int, int]) -> Mode:
        values, scratch = memory
        constants = self._constants
        addresses = Addresses(
            self.program,
            lowered.layout,
            values,
            scratch,
            self.packed,
            constants.vectors,
            constants.tables,
            self.pages.address,
            step.address,
        )
        return Mode(self.device, lowered, addresses)

    def _made(self, stage: Stage) -> list[str]:
        """Values that a stage makes and the host wants."""
        wanted = {*self.program.taps(), self.program.logits}
        made = [name for op in self.program.ops[stage.start : stage.stop] for name in op.writes() if name in wanted]
        return [*made, PEAKS] if self.program.logits in made and not self.program.encoder else made

    def mode(self, group: Group) -> Mode:
        """The calls that suit a group's size."""
        if group.kind == "decode":
            return self.decode
        return self._prompts[len(group.batch.ids) > BYTES_PROMPT]

    def _facts(self) -> dict[str, str | int]:
        families = sorted({matrix.family.name.lower() for matrix in self.packed.values()})
        return {
            "backend": "cuda",
            "isa": f"cuda-sm{self.device.capability[0]}{self.device.capability[1]}",
            "gpu": self.device.name,
            "kernels": " ".join(families),
            "packed_bytes": self._read_bytes(),
            "kv_bytes": self.pages.n_bytes,
        }

    def _read_bytes(self) -> int:
        """Of the weights, what decoding a token reads."""
        ops, packed = self.program.ops, self.packed
        used = {op.out: op.used for op in ops if isinstance(op, MoeRoute)}
        count = {op.weight: 1 for op in ops if isinstance(op, Linear)}
        count |= {op.weight: used[op.route] for op in ops if isinstance(op, ExpertLinear)}
        return sum(n * packed[name].n_bytes for name, n in count.items())

    def release(self) -> None:
        """Let go of all memory, whoever still holds this; nothing but facts may be asked for afterwards."""
        self._buffers.clear()
        del self.pages, self.steps, self.decode, self._prompts, self._constants
        self.device.close()
