"""`KvPages`: the memory of all KV layers, page after page."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..model.kv_types import KvTypes
from ..model.program import KvLayer
from .arena import Arena
from .kv_layout import key_bytes, value_bytes


def part_bytes(layer: KvLayer, types: KvTypes) -> tuple[int, int]:
    """Bytes of one page of a layer: of keys, and of values."""
    types = types.of(layer)
    keys, values = key_bytes(types.keys, layer.key_size), value_bytes(types.values, layer.value_size)
    return layer.kv_heads * keys, layer.kv_heads * values


class KvPages:
    """Keys and values of `n_pages` pages: of each layer first the keys of all pages, then the values of all pages.

    `places` holds the address of every (layer, "keys" or "values"). Fresh pages hold zeros.
    """

    def __init__(self, layers: tuple[KvLayer, ...], n_pages: int, types: KvTypes) -> None:
        parts = {
            (index, part): size
            for index, layer in enumerate(layers)
            for part, size in zip(("keys", "values"), part_bytes(layer, types), strict=True)
        }
        self.page_bytes = sum(parts.values())
        self.arena = Arena(self.page_bytes * n_pages + 64 * len(parts), "the key/value pages", huge=False)
        self.places = {key: self.arena.take(size * n_pages) for key, size in parts.items()}
        self._views = [self.arena.view(self.places[key], (n_pages, size), np.uint8) for key, size in parts.items()]

    def copy(self, source: int, target: int) -> None:
        """Copy all layers of one page."""
        for view in self._views:
            view[target] = view[source]

    def read(self, page: int, out: NDArray[np.uint8]) -> None:
        """Copy all layers of a page into `out` u8[page_bytes]."""
        begin = 0
        for view in self._views:
            out[begin : begin + view.shape[1]] = view[page]
            begin += view.shape[1]

    def write(self, page: int, data: NDArray[np.uint8]) -> None:
        """The way back."""
        begin = 0
        for view in self._views:
            view[page] = data[begin : begin + view.shape[1]]
            begin += view.shape[1]
