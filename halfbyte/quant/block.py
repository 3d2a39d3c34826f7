"""`BlockFormat`: what the bytes of one block mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError

if TYPE_CHECKING:
    from .encoder import Encoder

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Planes:
    """A block taken apart into integers and scales: `value == scale * q + offset`, exact in float32 without fma.

    Shapes: `q` int16[n, block_len], `scale` f32[n, groups], `offset` f32[n, groups] or None for zero; one scale
    serves `block_len // groups` neighbours.
    """

    q: NDArray[np.int16]
    scale: Floats
    offset: Floats | None = None

    def values(self) -> Floats:
        """f32[n, block_len], the product and the sum each rounded once."""
        n, length = self.q.shape
        grouped = self.q.reshape(n, self.scale.shape[1], -1).astype(np.float32) * self.scale[:, :, None]
        if self.offset is not None:
            grouped = grouped + self.offset[:, :, None]
        return grouped.reshape(n, length)


@dataclass(frozen=True)
class BlockFormat:
    """One tensor type of GGUF. `decode` equals gguf-py's `dequantize` bit for bit.

    Either `planes` or `decode_blocks` is given; a format with planes decodes through them. `encode_blocks` gives
    gguf-py's bytes, `encoder` those of least error; a format with neither can only be read.
    """

    name: str
    ggml_id: int
    block_len: int
    block_bytes: int
    planes: Callable[[Bytes], Planes] | None = None
    decode_blocks: Callable[[Bytes], Floats] | None = None
    encode_blocks: Callable[[Floats], Bytes] | None = None
    encoder: Encoder | None = None

    @property
    def bits_per_weight(self) -> float:
        """Bits of storage a weight, scales included."""
        return 8 * self.block_bytes / self.block_len

    def row_bytes(self, columns: int) -> int:
        """Bytes of a row of `columns` weights; raises `ConfigError` where the row does not divide into blocks."""
        if columns % self.block_len:
            raise ConfigError(f"a row of {columns} does not divide into {self.name} blocks of {self.block_len}")
        return columns // self.block_len * self.block_bytes

    def decode(self, data: Bytes) -> Floats:
        """u8[..., blocks * block_bytes] to f32[..., blocks * block_len]; NaN and infinite scales pass silently.

        Raises `ConfigError` where the last axis does not divide into blocks.
        """
        per_row, rest = divmod(data.shape[-1], self.block_bytes)
        if rest:
            raise ConfigError(f"{data.shape[-1]} bytes do not divide into {self.name} blocks of {self.block_bytes}")
        blocks = np.ascontiguousarray(data).reshape(-1, self.block_bytes)
        with np.errstate(over="ignore", invalid="ignore"):
            values = self.decode_blocks(blocks) if self.decode_blocks is not None else self._decode_planes(blocks)
        return values.reshape(*data.shape[:-1], per_row * self.block_len)

    def _decode_planes(self, blocks: Bytes) -> Floats:
        """In pieces that fit a cache: the planes of a whole embedding would take gigabytes."""
        assert self.planes is not None
        values = np.empty((len(blocks), self.block_len), dtype=np.float32)
        step = 2**17 // self.block_len
        for start in range(0, len(blocks), step):
            values[start : start + step] = self.planes(blocks[start : start + step]).values()
        return values

    def encode(self, values: Floats) -> Bytes:
        """f32[..., columns] to u8[..., row_bytes]: gguf-py's bytes if it can write the format, else by search.

        Raises `ConfigError` for a format that can only be read and for weights it cannot hold.
        """
        width = self.row_bytes(values.shape[-1])
        if not values.size and (self.encode_blocks or self.encoder):
            return np.empty((*values.shape[:-1], width), np.uint8)
        if self.encode_blocks is not None:
            blocks = np.ascontiguousarray(values, dtype=np.float32).reshape(-1, self.block_len)
            return self.encode_blocks(blocks).reshape(*values.shape[:-1], width)
        # These modules need the types above.
        from .encode_rows import encode_rows
        from .search import NUMPY

        rows = np.ascontiguousarray(values, dtype=np.float32).reshape(-1, values.shape[-1])
        return encode_rows(self, rows, None, NUMPY).reshape(*values.shape[:-1], width)
