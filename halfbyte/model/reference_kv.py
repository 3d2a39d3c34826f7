"""`PagedKv`: keys and values of the reference, in pages."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .kv_types import KvTypes, rounded
from .program import KvLayer

Floats = NDArray[np.float32]


class PagedKv:
    """Shapes: keys[layer] [P, page_len, K, C], values[layer] [P, page_len, K, Cv]. Fresh slots hold NaN.

    Numbers are rounded as their type does and kept as halves, or float32 where halves do not do.
    """

    def __init__(self, layers: tuple[KvLayer, ...], n_pages: int, page_len: int, types: KvTypes) -> None:
        self.page_len = page_len
        self._types = [types.of(kv) for kv in layers]
        head = (n_pages, page_len)
        each = list(zip(layers, self._types, strict=True))
        self.keys = [np.full((*head, kv.kv_heads, kv.key_size), np.nan, _dtype(own.keys)) for kv, own in each]
        self.values = [np.full((*head, kv.kv_heads, kv.value_size), np.nan, _dtype(own.values)) for kv, own in each]

    def write(self, layer: int, slots: NDArray[np.int32], k: Floats, v: Floats) -> None:
        """Store k[T, K*C] and v[T, K*Cv] in `slots`."""
        page, offset = np.divmod(slots, self.page_len)
        for store, rows, kind in (
            (self.keys[layer], k, self._types[layer].keys),
            (self.values[layer], v, self._types[layer].values),
        ):
            store[page, offset] = rounded(kind, rows.reshape(len(slots), *store.shape[2:]))

    def read(self, layer: int, pages: NDArray[np.int32], start: int, stop: int) -> tuple[Floats, Floats]:
        """Keys [n, K, C] and values [n, K, Cv] of positions start .. stop - 1 of a sequence with these pages."""
        position = np.arange(start, stop)
        page, offset = pages[position // self.page_len], position % self.page_len
        assert page.min() >= 0, "a page that is looked at is missing"
        k, v = self.keys[layer][page, offset], self.values[layer][page, offset]
        return k.astype(np.float32), v.astype(np.float32)

    def copy_page(self, source: int, target: int) -> None:
        """Copy all layers of one page."""
        for store in self.keys + self.values:
            store[target] = store[source]

    def read_page(self, page: int, out: NDArray[np.uint8]) -> None:
        """Copy all layers of a page into `out` u8[page_bytes]."""
        assert out.shape == (self.page_bytes,), out.shape
        np.concatenate([store[page].reshape(-1).view(np.uint8) for store in self.keys + self.values], out=out)

    def write_page(self, page: int, data: NDArray[np.uint8]) -> None:
        """The way back."""
        assert data.shape == (self.page_bytes,), data.shape
        begin = 0
        for store in self.keys + self.values:
            end = begin + store[page].nbytes
            store[page] = data[begin:end].view(store.dtype).reshape(store.shape[1:])
            begin = end

    @property
    def page_bytes(self) -> int:
        """Bytes of one page over all layers."""
        return sum(store[:1].nbytes for store in self.keys + self.values)

    @property
    def n_bytes(self) -> int:
        """Bytes of all pages."""
        return sum(store.nbytes for store in self.keys + self.values)


def _dtype(kind: str) -> type[np.floating[Any]]:
    return np.float16 if kind == "f16" else np.float32
