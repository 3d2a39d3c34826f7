"""`nvfp4_weight`: 4-bit floats, two to a byte, the first in the low nibble; 16 share an 8-bit float as scale."""

from __future__ import annotations

from functools import partial

import numpy as np

from ....quant.block import Floats
from ....quant.e2m1 import E2M1
from ..tensor_source import SourceTensor
from .fields import fields
from .scaled_rows import scaled_rows
from .spread import Spread
from .stored import Stored, check_matrix, check_shape, wrong
from .weight import QuantizedWeight

GROUP = 16
_VALUES = np.copysign(E2M1.astype(np.float32) / 2, np.where(np.arange(16) < 8, np.float32(1), np.float32(-1)))
"""With a zero of each sign."""


def nvfp4_weight(
    stored: Stored, name: str, packed: SourceTensor, scale: SourceTensor, outer: SourceTensor, *, divides: bool
) -> QuantizedWeight:
    """Of `packed` u8[N, M / 2], a scale f8[N, M / 16] and one number for all, which multiplies or `divides` scales."""
    rows, half = check_matrix(packed)
    if half * 2 % GROUP:
        raise wrong(packed, f"has {half * 2} columns, which groups of {GROUP} do not divide")
    check_shape(scale, (rows, half * 2 // GROUP), f"{packed.name!r} of shape {list(packed.shape)}")
    if outer.shape not in ((), (1,)):
        raise wrong(outer, f"has shape {list(outer.shape)}, not one number")
    tensor = SourceTensor(name, "F32", (rows, half * 2), packed.path)
    decode = partial(_rows, stored, packed, scale, outer, divides)
    return QuantizedWeight(tensor, (packed.name, scale.name, outer.name), decode)


def _rows(
    stored: Stored, packed: SourceTensor, scale: SourceTensor, outer: SourceTensor, divides: bool, start: int, stop: int
) -> Floats:
    data = stored.read(packed, start, stop)
    factor = stored.floats(outer).reshape(())
    if divides and not factor:
        raise wrong(outer, "is zero, but divides")
    scales = stored.floats(scale, start, stop)
    scales = scales / factor if divides else scales * factor

    def codes(first: int, last: int) -> Floats:
        return _VALUES.take(fields(data[first:last], 4), mode="clip")

    return scaled_rows(codes, packed.shape[1] * 2, scales, Spread(GROUP))
