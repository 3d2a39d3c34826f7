"""From bf16 to f16 without a detour: where both are normal numbers, eight bits of mantissa fit into eleven."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .block import Floats

_SIGN, _SIZE = np.uint16(0x8000), np.uint16(0x7FFF)
_LEAST = np.uint16(0x3880)
"""2**-14, the least normal half, as bf16."""
_NORMAL = np.uint16(0x4780 - 0x3880)
"""How many bf16 numbers there are from there to 2**16, which is no half."""
_REBIAS = np.uint16(0x3880 - ((127 - 15) << 7))


def bf16_to_f16(words: NDArray[np.uint16]) -> tuple[NDArray[np.uint16], NDArray[np.intp], Floats]:
    """The halves of u16[n] bf16 words as u16[n]; where they are not the same numbers, and by how much: f32, ascending.

    Beyond 65504 they are infinite.
    """
    above = (words & _SIZE) - _LEAST  # and far above for smaller ones: it wraps
    odd = np.flatnonzero(above >= _NORMAL)
    above += _REBIAS
    above <<= np.uint16(3)
    above |= words & _SIGN
    if not odd.size:
        return above, odd, np.empty(0, np.float32)
    exact: NDArray[Any] = (words[odd].astype(np.uint32) << np.uint32(16)).view(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        near = exact.astype(np.float16)
        errors = near.astype(np.float32) - exact
    above[odd] = near.view(np.uint16)
    wrong = errors != 0
    return above, odd[wrong], errors[wrong]
