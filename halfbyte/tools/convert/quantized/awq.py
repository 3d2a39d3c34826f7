"""awq: integers of 4 bits packed along the rows, a scale and a zero for each group of columns.

Of a weight [N, M]: `qweight` i32[M, N / 8], `qzeros` i32[G, N / 8], `scales` [G, N]. From the lowest, nibbles of a
word are its rows 0, 2, 4, 6, 1, 3, 5, 7.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ....errors import UnsupportedError
from ....model.checkpoint_config import CheckpointConfig
from ....quant.block import Bytes, Floats
from ..tensor_source import SourceTensor
from .recent import Recent
from .scaled_rows import scaled_rows
from .spread import Spread
from .stored import FLOATS, Stored, check_matrix, check_shape, wrong
from .weight import QuantizedWeight

_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
_KEPT = 2**26


@dataclass(frozen=True)
class _Turned:
    """`words` u32[N / 8, M], scales and zeros f32[N, G]."""

    words: NDArray[np.uint32]
    scales: Floats
    zeros: Floats

    @property
    def nbytes(self) -> int:
        return self.words.nbytes + self.scales.nbytes + self.zeros.nbytes


@dataclass(frozen=True)
class _Module:
    qweight: SourceTensor
    qzeros: SourceTensor
    scales: SourceTensor
    group: int


def weights(stored: Stored, config: CheckpointConfig) -> list[QuantizedWeight]:
    """All groups of tensors that are there."""
    group = _group(config)
    recent: Recent[_Turned] = Recent(_KEPT)
    found = []
    for stem in stored.stems(".qweight", ".qzeros", ".scales"):
        module = _module(stored, stem, group)
        columns, words = module.qweight.shape
        tensor = SourceTensor(f"{stem}.weight", "F32", (words * 8, columns), module.qweight.path)
        names = (module.qweight.name, module.qzeros.name, module.scales.name)
        found.append(QuantizedWeight(tensor, names, partial(_rows, recent, stored, module)))
    return found


def _group(config: CheckpointConfig) -> int:
    """Columns of a group, -1 for all. Raises `UnsupportedError` for packings that we do not know."""
    bits = config.integer("bits", config.integer("w_bit", 4))
    group = config.integer("group_size", config.integer("q_group_size", 128, low=-1), low=-1)
    version = config.text("version", config.text("format", "gemm")).lower()
    if config.text("backend", "") == "llm-awq":
        version = "llm-awq"
    config.raise_problems()
    if bits != 4 or version != "gemm":
        raise UnsupportedError(
            f"{config.path}: its awq weights have {bits} bits and are packed as {version!r}; convert the checkpoint "
            "that they were made of",
            known=("4 bits packed as 'gemm'",),
        )
    return group


def _module(stored: Stored, stem: str, group: int) -> _Module:
    qweight, qzeros = (stored.want(stem, ending, ("I32",)) for ending in (".qweight", ".qzeros"))
    scales = stored.want(stem, ".scales", FLOATS)
    columns, words = check_matrix(qweight)
    group = group if group > 0 else columns
    if columns % group:
        raise wrong(qweight, f"has {columns} columns, which groups of {group} do not divide")
    why = f"{qweight.name!r} of {words * 8} rows in groups of {group} columns"
    check_shape(qzeros, (columns // group, words), why)
    check_shape(scales, (columns // group, words * 8), why)
    return _Module(qweight, qzeros, scales, group)


def _rows(recent: Recent[_Turned], stored: Stored, module: _Module, start: int, stop: int) -> Floats:
    turned = recent.get(module.qweight.name, partial(_turn, stored, module))

    def codes(first: int, last: int) -> Bytes:
        first, last = start + first, start + last
        of_words = _eight_rows(turned.words[first // 8 : -(-last // 8)])
        return of_words[first % 8 : first % 8 + last - first]

    return scaled_rows(
        codes, module.qweight.shape[0], turned.scales[start:stop], Spread(module.group), turned.zeros[start:stop]
    )


def _turn(stored: Stored, module: _Module) -> _Turned:
    def turned(tensor: SourceTensor) -> NDArray[np.uint32]:
        return np.ascontiguousarray(stored.read(tensor).T).view(np.uint32)

    scales = np.ascontiguousarray(stored.floats(module.scales).T)
    return _Turned(turned(module.qweight), scales, _eight_rows(turned(module.qzeros)).astype(np.float32))


def _eight_rows(words: NDArray[np.uint32]) -> Bytes:
    """u32[n, k] to u8[8 * n, k]."""
    n, k = words.shape
    rows = np.empty((n, 8, k), np.uint8)
    for i, row in enumerate(_ORDER):
        rows[:, row] = words >> np.uint32(4 * i) & np.uint32(15)
    return rows.reshape(8 * n, k)
