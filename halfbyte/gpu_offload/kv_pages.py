"""`KvPages`: the pages of all KV layers on a device, each in one piece."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..model.kv_types import KvTypes
from ..model.program import KvLayer
from .device import Device
from .kv_layout import kv_layout


class KvPages:
    """`n_pages` pages of `page_bytes` from `address` on, page after page."""

    def __init__(self, device: Device, layers: tuple[KvLayer, ...], n_pages: int, types: KvTypes) -> None:
        self.layout = kv_layout(layers, types)
        self.page_bytes = self.layout.page_bytes
        self._device = device
        self._memory = device.allocate(max(1, self.page_bytes * n_pages))
        self.address = self._memory.address
        self.n_bytes = self.page_bytes * n_pages

    def copy(self, source: int, target: int) -> None:
        """Copy one page, in order with the steps."""
        self._device.copy(self._at(target), self._at(source), self.page_bytes)

    def read(self, page: int, out: NDArray[np.uint8]) -> None:
        """Copy a page into `out` u8[page_bytes], and wait for it."""
        self._device.copy_out(out, self._at(page))
        self._device.synchronize()

    def write(self, page: int, data: NDArray[np.uint8]) -> None:
        """The way back; `data` may be changed afterwards."""
        self._device.copy_in(self._at(page), data)
        self._device.synchronize()

    def _at(self, page: int) -> int:
        return self.address + page * self.page_bytes
