"""Values on their way between host and device, in memory that copies need not wait for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .device import Device
from .groups import Group
from .place import stride_of

Floats = NDArray[np.float32]


def pinned_rows(device: Device, rows: int, stride: int) -> Floats:
    """f32[rows, stride]."""
    return device.pinned(4 * max(rows, 1) * stride).view(np.float32).reshape(-1, stride)


class Border:
    """One value: the host's rows of the whole step, and those of each group as the device has them."""

    def __init__(self, device: Device, width: int, most_rows: int, asked: bool, stride: int | None = None) -> None:
        self.asked, self.width, self.stride = asked, width, stride or stride_of(width)
        self.whole = pinned_rows(device, most_rows, self.stride)
        self._parts = dict.fromkeys(("decode", "prompt"), self.whole)
        self._device, self._most = device, most_rows
        self._several = False

    def part(self, group: Group) -> Floats:
        """Where a group's rows are copied from and to: of a step with one group the whole step's."""
        if group.tokens is not None and not self._several:
            self._parts = {kind: pinned_rows(self._device, self._most, self.stride) for kind in self._parts}
            self._several = True
        return self._parts[group.kind] if group.tokens is not None else self.whole

    def rows(self, group: Group) -> int:
        """How many rows a group has of it."""
        return len(group.batch.logit_rows if self.asked else group.batch.ids)

    def scatter(self, group: Group) -> None:
        """Bring a group's rows to where those of the whole step are."""
        if group.tokens is not None:
            self.whole[group.index(self.asked)] = self.part(group)[: self.rows(group)]

    def gather(self, group: Group) -> None:
        """The way back."""
        if group.tokens is not None:
            self.part(group)[: self.rows(group)] = self.whole[group.index(self.asked)]
