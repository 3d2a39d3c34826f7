"""What never changes on the device besides matrices: weights as vectors of floats, and tables of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from ..model.backend import Weight
from .calls import Call, Data, Multiply, Vector
from .device import Buffer, Device
from .place import operands_of, rounded

PADDING = 256
"""Bytes of zeros behind a vector."""


class Constants:
    """`vectors` by weight and `tables` by content, to addresses."""

    def __init__(self, device: Device, calls: Iterable[Call | Multiply], weights: Mapping[str, Weight]) -> None:
        operands = [operand for call in calls for operand in operands_of(call)]
        vectors = dict.fromkeys(operand.weight for operand in operands if isinstance(operand, Vector))
        tables = dict.fromkeys(operand.content for operand in operands if isinstance(operand, Data))
        parts: list[NDArray[np.uint8]] = [
            np.ascontiguousarray(weights[name].decode().reshape(-1), np.float32).view(np.uint8) for name in vectors
        ]
        parts += [np.frombuffer(content, np.uint8) for content in tables]
        starts, at = [], 0
        for part in parts:
            starts.append(at)
            at += rounded(len(part) + PADDING)
        image = np.zeros(max(at, 1), np.uint8)
        for start, part in zip(starts, parts, strict=True):
            image[start : start + len(part)] = part
        self._memory: Buffer = device.allocate(len(image))
        device.copy_in(self._memory.address, image)
        device.synchronize()
        addresses = [self._memory.address + start for start in starts]
        self.vectors = dict(zip(vectors, addresses[: len(vectors)], strict=True))
        self.tables = dict(zip(tables, addresses[len(vectors) :], strict=True))
