"""What bytes in planes mean; how they lie is told in `kernels/forms.cuh`."""

from __future__ import annotations

import numpy as np

UNIT = 256
RECORD = np.dtype(
    [("sums", "<i4", 8), ("halves", "i1", (3, 16)), ("groups", "i1", (3, 8)), ("scale", "<f4"), ("unused", "<i4", 5)]
)
"""What goes with a unit of a token."""
DIGITS = np.int32([1, 256, 65536])
"""What the digits of a sum are worth."""


def of_digits(digits: np.ndarray) -> np.ndarray:
    """Sums from signed digits [..., 3, n]."""
    return (digits.astype(np.int32) * DIGITS[:, None]).sum(-2)


def quads_of(rows: int) -> int:
    return (rows + 3) // 4


def units_of(width: int) -> int:
    return (width + UNIT - 1) // UNIT


def from_planes(planes: np.ndarray, records: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """f32[tokens, columns], whole units of them, and which tokens are as poison left them.

    Checks the sums in the records. `planes` and `records` are the bytes of whole quads.
    """
    units = units_of(width)
    wide = planes.view(np.int8).reshape(-1, units, 8, 4, 2, 4, 2, 4)  # quad unit group token plane t half byte
    by_token = wide.transpose(0, 3, 1, 4, 2, 6, 5, 7)  # quad token unit plane group half t byte
    whole = by_token.astype(np.int32)
    whole = (256 * whole[:, :, :, 0] + whole[:, :, :, 1]).reshape(-1, units, 16, 16)
    of_rows = records.view(RECORD).reshape(-1, units, 4).transpose(0, 2, 1).reshape(-1, units)
    untouched = (by_token == -1).reshape(len(whole), -1).all(1) & np.isnan(of_rows["scale"]).all(1)
    there = ~untouched
    halves = whole.sum(3)
    assert np.array_equal(of_digits(of_rows["halves"])[there], halves[there])
    assert np.array_equal(of_digits(of_rows["groups"])[there], of_rows["sums"][there])
    assert np.array_equal(of_rows["sums"][there], (halves[..., ::2] + halves[..., 1::2])[there])
    return whole.reshape(len(whole), -1) * np.repeat(of_rows["scale"], UNIT, 1), untouched
