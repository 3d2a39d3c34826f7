"""`StepImage`: the `Step` of `kernels/step.cuh` and its arrays, on the host and on the device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..model.program import StepBatch
from .device import Device

HEADER = np.dtype(
    [
        *((name, np.int32) for name in ("tokens", "sequences", "rows", "max_pages", "adapters")),
        ("unused", np.int32, 3),
        *((name, np.uint64) for name in ("ids", "positions", "seq_of", "slots", "page_table", "seq_len", "logit_rows")),
        ("adapter_scales", np.uint64),
    ]
)
_TYPES: dict[str, type[np.generic]] = {"adapter_scales": np.float32}
assert HEADER.fields is not None
TOKENS_AT, ROWS_AT = HEADER.fields["tokens"][1], HEADER.fields["rows"][1]


@dataclass(frozen=True)
class Capacity:
    """The most of everything that a step may have."""

    tokens: int
    sequences: int
    max_pages: int
    adapters: int


class StepImage:
    """One copy takes a step to the device. The page table comes last: it may be long, and is copied as far as used."""

    def __init__(self, device: Device, capacity: Capacity) -> None:
        c = capacity
        sizes = {
            **dict.fromkeys(("ids", "positions", "seq_of", "slots", "logit_rows"), c.tokens),
            "seq_len": c.sequences,
            "adapter_scales": c.sequences * c.adapters,
            "page_table": c.sequences * c.max_pages,
        }
        starts, at = {}, HEADER.itemsize
        for name, size in sizes.items():
            starts[name] = at
            at += -(-4 * max(size, 1) // 16) * 16
        self._device, self._capacity = device, capacity
        self._memory = device.allocate(at)
        self.address = self._memory.address
        self._image = device.pinned(at)
        self._header = self._image[: HEADER.itemsize].view(HEADER)[0:1]
        self._arrays = {
            name: self._image[start : start + 4 * sizes[name]].view(_TYPES.get(name, np.int32))
            for name, start in starts.items()
        }
        self._table_at = starts["page_table"]
        self._header[:] = np.zeros(1, HEADER)
        for name, start in starts.items():
            self._header[name] = self.address + start

    def send(self, batch: StepBatch) -> None:
        """Enqueue the copy of a step; the one before must have run."""
        tokens, sequences = len(batch.ids), len(batch.seq_len)
        width = max(1, min(batch.page_table.shape[1], self._capacity.max_pages))
        arrays = self._arrays
        for name in ("ids", "positions", "seq_of", "slots"):
            arrays[name][:tokens] = getattr(batch, name)
        arrays["seq_len"][:sequences] = batch.seq_len
        arrays["logit_rows"][: len(batch.logit_rows)] = batch.logit_rows
        arrays["page_table"][: sequences * width].reshape(sequences, width)[:] = batch.page_table[:, :width]
        adapters = self._put_adapters(batch.adapter_scales, sequences)
        header = self._header
        header["tokens"], header["sequences"], header["rows"] = tokens, sequences, len(batch.logit_rows)
        header["max_pages"], header["adapters"] = width, adapters
        self._device.copy_in(self.address, self._image[: self._table_at + 4 * sequences * width])

    def _put_adapters(self, scales: NDArray[np.float32] | None, sequences: int) -> int:
        """Nothing of any adapter where a batch says nothing."""
        room = self._arrays["adapter_scales"]
        adapters = self._capacity.adapters
        if scales is None:
            room[:] = 0
        elif adapters:
            room[: sequences * adapters] = scales.reshape(-1)
        return adapters
