"""Weights of signed integers: `packed_weight` into words along the columns, `byte_weight` one to a byte.

Of a weight [N, M]: `weight_packed` i32[N, ceil(M * bits / 32)] holds integers more by 2^(bits - 1), `weight_shape` is
[N, M]; zeros are i8 like the scales, or packed down the rows, i32[ceil(N * bits / 32), G].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import UnsupportedError
from ....model.checkpoint_config import CheckpointConfig
from ....quant.block import Floats
from ..tensor_source import SourceTensor
from .fields import fields
from .group_order import group_order
from .scale_grid import ScaleGrid, grid_of
from .scaled_rows import scaled_rows
from .scheme import Scheme
from .spread import Spread
from .stored import FLOATS, Stored, check_matrix, check_shape, wrong
from .weight import QuantizedWeight

_BITS = (2, 4, 8)
"""Of others there are two ways to pack them."""


@dataclass(frozen=True)
class _Module:
    codes: SourceTensor
    """`bits` are 0 where they are bytes."""
    bits: int
    columns: int
    scales: ScaleGrid
    zeros: SourceTensor | None
    g_idx: SourceTensor | None


def packed_weight(stored: Stored, stem: str, scheme: Scheme, config: CheckpointConfig) -> QuantizedWeight:
    """Raises `UnsupportedError` for a number of bits that we do not know."""
    if scheme.bits not in _BITS:
        raise UnsupportedError(
            f"{config.path}: {stem!r} has packed weights of {scheme.bits} bits; convert the checkpoint that they were "
            "made of",
            known=map(str, _BITS),
        )
    packed = stored.want(stem, ".weight_packed", ("I32",))
    size = stored.want(stem, ".weight_shape", ("I64", "I32"))
    check_shape(size, (2,), "a matrix")
    rows, words = check_matrix(packed)
    n, m = (int(number) for number in stored.read(size))
    if n != rows or m < 1 or -(-m * scheme.bits // 32) != words:
        raise wrong(packed, f"has shape {list(packed.shape)}, but {size.name!r} says {n} x {m} of {scheme.bits} bits")
    return _weight(stored, stem, packed, scheme, m, (size,), scheme.bits)


def byte_weight(stored: Stored, stem: str, scheme: Scheme) -> QuantizedWeight:
    """Of a module whose `weight` is i8."""
    codes = stored.want(stem, ".weight", ("I8",))
    _, columns = check_matrix(codes)
    return _weight(stored, stem, codes, scheme, columns, (), 0)


def _weight(
    stored: Stored, stem: str, codes: SourceTensor, scheme: Scheme, m: int, also: tuple[SourceTensor, ...], bits: int
) -> QuantizedWeight:
    shape = (codes.shape[0], m)
    scales = grid_of(stored.want(stem, ".weight_scale", FLOATS), codes, shape, scheme.blocks)
    zeros, g_idx = (stored.tensors.get(stem + ending) for ending in (".weight_zero_point", ".weight_g_idx"))
    if zeros is not None:
        _check_zeros(stored.want(stem, ".weight_zero_point", ("I32", "I8")), scales, bits)
    if g_idx is not None:
        check_shape(stored.want(stem, ".weight_g_idx", ("I32", "I64")), (m,), f"{m} columns")
    module = _Module(codes, bits, m, scales, zeros, g_idx)
    members = (codes, scales.tensor, *also, *(tensor for tensor in (zeros, g_idx) if tensor is not None))
    plain = SourceTensor(f"{stem}.weight", "F32", shape, codes.path)
    return QuantizedWeight(plain, tuple(member.name for member in members), partial(_rows, stored, module))


def _check_zeros(zeros: SourceTensor, scales: ScaleGrid, bits: int) -> None:
    shape = scales.tensor.shape
    if zeros.dtype == "I32" and bits:
        if len(shape) != 2 or scales.rows != 1:
            raise wrong(zeros, f"holds packed zeros, but the scales {scales.tensor.name!r} are not those of rows")
        shape = (-(-shape[0] * bits // 32), shape[1])
    check_shape(zeros, shape, f"zeros beside {scales.tensor.name!r} of shape {list(scales.tensor.shape)}")


def _rows(stored: Stored, module: _Module, start: int, stop: int) -> Floats:
    data = stored.read(module.codes, start, stop)

    def codes(first: int, last: int) -> NDArray[Any]:
        return _integers(data[first:last], module.bits)[:, : module.columns]

    scales, zeros = module.scales.of_rows(stored, start, stop), _zeros(stored, module, start, stop)
    return scaled_rows(codes, module.columns, scales, _spread(stored, module), zeros)


def _integers(data: NDArray[Any], bits: int) -> NDArray[np.int8]:
    """i8[n, M] of i32 words or of bytes."""
    if not bits:
        return data
    codes = fields(data.view(np.uint8), bits)
    # Less the middle, modulo 256: every result fits the signed byte.
    return (codes - np.uint8(1 << (bits - 1))).view(np.int8)


def _zeros(stored: Stored, module: _Module, start: int, stop: int) -> Floats | None:
    tensor, bits = module.zeros, module.bits
    if tensor is None:
        return None
    if tensor.dtype == "I8" or not bits:
        return ScaleGrid(tensor, module.scales.weight, module.scales.rows, module.scales.columns).of_rows(
            stored, start, stop
        )
    per_word = 32 // bits
    first = start // per_word
    words = np.ascontiguousarray(stored.read(tensor, first, -(-stop // per_word)).T)
    zeros = _integers(words, bits)[:, start - first * per_word : stop - first * per_word]
    return np.ascontiguousarray(zeros.T).astype(np.float32)


def _spread(stored: Stored, module: _Module) -> Spread:
    group = module.scales.columns
    if module.g_idx is None:
        return Spread(group)
    groups = -(-module.columns // group)
    return Spread(group, group_order(stored, module.g_idx, group, groups))
