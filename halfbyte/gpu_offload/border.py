"""Values on their way between host and device, in memory that copies need not wait for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .device import Device
from .groups import Group
from .place import rounded, stride_of

Floats = NDArray[np.float32]
Whose = Literal["whole", "decode", "prompt"]


class Room:
    """Pinned memory, once for a whole step and where need be for each of its groups; `take` all before `rows`."""

    def __init__(self, device: Device) -> None:
        self.n_bytes = 0
        self._device = device
        self._memory: dict[Whose, NDArray[np.uint8]] = {}

    def take(self, n_bytes: int) -> None:
        """Be at least so large."""
        self.n_bytes = max(self.n_bytes, n_bytes)

    def rows(self, whose: Whose, offset: int, rows: int, stride: int) -> Floats:
        """f32[rows, stride]."""
        if whose not in self._memory:
            self._memory[whose] = self._device.pinned(self.n_bytes)
        part = self._memory[whose][offset : offset + 4 * rows * stride]
        return part.view(np.float32).reshape(rows, stride)


class Border:
    """One value: the host's rows of the whole step, and those of each group as the device has them."""

    def __init__(
        self, room: Room, offset: int, width: int, most_rows: int, asked: bool, stride: int | None = None
    ) -> None:
        self.asked, self.width, self.stride = asked, width, stride or stride_of(width)
        self.most_rows, self.offset = max(most_rows, 1), offset
        self._room = room
        self._places: dict[Whose, Floats] = {}
        room.take(offset + self.n_bytes)

    @property
    def n_bytes(self) -> int:
        """What it takes of the room."""
        return rounded(4 * self.most_rows * self.stride)

    def _at(self, whose: Whose) -> Floats:
        if whose not in self._places:
            self._places[whose] = self._room.rows(whose, self.offset, self.most_rows, self.stride)
        return self._places[whose]

    @property
    def whole(self) -> Floats:
        """f32[rows, stride] of the whole step."""
        return self._at("whole")

    def part(self, group: Group) -> Floats:
        """Where a group's rows are copied from and to: of a step with one group the whole step's."""
        return self._at("whole" if group.tokens is None else group.kind)

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


Make = Callable[[Room, int, str], Border]
"""Makes the border of a value at an offset."""


def side_by_side(room: Room, names: list[str], make: Make) -> dict[str, Border]:
    """Borders that are in use at the same time; those of other times may lie in the same room."""
    borders, offset = {}, 0
    for name in names:
        borders[name] = make(room, offset, name)
        offset += borders[name].n_bytes
    return borders
