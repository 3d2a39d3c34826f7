"""gptq: integers of 2, 3, 4 or 8 bits packed down the columns, a scale and a zero for each group of columns.

Of a weight [N, M]: `qweight` i32[M * bits / 32, N], `qzeros` i32[G, N * bits / 32], `scales` [G, N], and of columns
quantized in another order `g_idx` i32[M], the group of each. Version 1 stores zeros less one.
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
from .fields import fields
from .group_order import group_order
from .recent import Recent
from .scaled_rows import scaled_rows
from .spread import Spread
from .stored import FLOATS, Stored, check_matrix, check_shape, wrong
from .weight import QuantizedWeight

_BITS = (2, 3, 4, 8)
_VERSIONS = ("gptq", "gptq_v2")
_KEPT = 2**26
"""Bytes of matrices that are kept as long as their rows are asked for: they are stored the other way round."""


@dataclass(frozen=True)
class _Settings:
    bits: int
    group: int
    first_version: bool
    symmetric: bool
    varied: bool
    """Whether some modules have other bits and groups, which their tensors tell."""


@dataclass(frozen=True)
class _Turned:
    """By rows: `packed` u8[N, M * bits / 8], scales and zeros f32[N, G]."""

    packed: Bytes
    scales: Floats
    zeros: Floats
    spread: Spread

    @property
    def nbytes(self) -> int:
        return self.packed.nbytes + self.scales.nbytes + self.zeros.nbytes


@dataclass(frozen=True)
class _Module:
    qweight: SourceTensor
    qzeros: SourceTensor
    scales: SourceTensor
    g_idx: SourceTensor | None
    bits: int
    group: int
    columns: int


def weights(stored: Stored, config: CheckpointConfig) -> list[QuantizedWeight]:
    """All groups of tensors that are there."""
    settings = _read(config)
    recent: Recent[_Turned] = Recent(_KEPT)
    found = []
    for stem in stored.stems(".qweight", ".qzeros", ".scales", ".g_idx"):
        module = _module(stored, stem, settings)
        tensor = SourceTensor(f"{stem}.weight", "F32", (module.scales.shape[1], module.columns), module.qweight.path)
        members = (module.qweight, module.qzeros, module.scales, *([module.g_idx] if module.g_idx else []))
        names = tuple(member.name for member in members)
        found.append(QuantizedWeight(tensor, names, partial(_rows, recent, stored, module, settings)))
    return found


def _read(config: CheckpointConfig) -> _Settings:
    bits, group = config.integer("bits"), config.integer("group_size", 128, low=-1)
    layout = config.text("checkpoint_format", config.text("format", "gptq")).lower()
    symmetric = config.flag("sym", True)
    varied = bool(config.given.get("dynamic") or config.given.get("extra_config"))
    if config.sound("bits") and bits not in _BITS:
        config.problem(f"{config.prefix}bits", f"is {bits}, not one of {', '.join(map(str, _BITS))}")
    config.raise_problems()
    if config.given.get("is_marlin_format") is True:
        layout = "marlin"
    if layout not in _VERSIONS:
        raise UnsupportedError(
            f"{config.path}: its gptq weights are packed as {layout!r}; pack them as gptq, or convert the checkpoint "
            "that they were made of",
            known=_VERSIONS,
        )
    return _Settings(bits, group, layout == "gptq", symmetric, varied)


def _module(stored: Stored, stem: str, settings: _Settings) -> _Module:
    qweight, qzeros = (stored.want(stem, ending, ("I32",)) for ending in (".qweight", ".qzeros"))
    scales = stored.want(stem, ".scales", FLOATS)
    (words, rows), (groups, _) = check_matrix(qweight), check_matrix(scales)
    check_shape(scales, (groups, rows), f"{qweight.name!r} of {rows} rows")
    bits = _bits(qzeros, rows, settings)
    check_shape(qzeros, (groups, -(-rows * bits // 32)), f"{rows} rows of {bits} bits in {groups} groups")
    columns, rest = divmod(words * 32, bits)
    if rest:
        raise wrong(qweight, f"has {words} words a row, which {bits} bits do not divide")
    g_idx = stored.want(stem, ".g_idx", ("I32", "I64")) if f"{stem}.g_idx" in stored.tensors else None
    if g_idx is not None:
        check_shape(g_idx, (columns,), f"{columns} columns")
    group = settings.group if settings.group > 0 else columns
    if settings.varied and -(-columns // group) != groups:
        group = -(-columns // groups)
    if -(-columns // group) != groups:
        raise wrong(scales, f"has {groups} groups, but {columns} columns in groups of {group} need another number")
    return _Module(qweight, qzeros, scales, g_idx, bits, group, columns)


def _bits(qzeros: SourceTensor, rows: int, settings: _Settings) -> int:
    if not settings.varied:
        return settings.bits
    _, words = check_matrix(qzeros)
    return next((bits for bits in _BITS if -(-rows * bits // 32) == words), settings.bits)


def _rows(
    recent: Recent[_Turned], stored: Stored, module: _Module, settings: _Settings, start: int, stop: int
) -> Floats:
    turned = recent.get(module.qweight.name, partial(_turn, stored, module, settings))

    def codes(first: int, last: int) -> Bytes:
        return fields(turned.packed[start + first : start + last], module.bits)

    scales, zeros = turned.scales[start:stop], turned.zeros[start:stop]
    return scaled_rows(codes, module.columns, scales, turned.spread, zeros)


def _turn(stored: Stored, module: _Module, settings: _Settings) -> _Turned:
    scales = np.ascontiguousarray(stored.floats(module.scales).T)
    words = stored.read(module.qzeros).view(np.uint32)
    zeros = np.ascontiguousarray(_zeros(words, module.bits, settings)[:, : len(scales)].T).astype(np.float32)
    of_column = None
    if module.g_idx is not None:
        of_column = group_order(stored, module.g_idx, module.group, scales.shape[1])
    packed = np.ascontiguousarray(stored.read(module.qweight).T).view(np.uint8)
    return _Turned(packed, scales, zeros, Spread(module.group, of_column))


def _zeros(words: NDArray[np.uint32], bits: int, settings: _Settings) -> Bytes:
    """u8[G, N]."""
    if not settings.first_version:
        return fields(words.view(np.uint8), bits)
    if bits != 3:
        # Whoever writes takes one from every field at once, so zeros of 0 borrow from their neighbours.
        one_each = np.uint32(0xFFFFFFFF // ((1 << bits) - 1))
        return fields((words + one_each).view(np.uint8), bits)
    stored = fields(words.view(np.uint8), bits)
    # Of 3 bits writers disagree about what to take away; without it a symmetric zero is the middle.
    return np.full_like(stored, 4) if settings.symmetric else stored + np.uint8(1) & np.uint8(7)
