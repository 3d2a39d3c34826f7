"""How wide a step is and which step a weight takes, shared by the encoders that look at one block at a time."""

from __future__ import annotations

import numpy as np

from .block import Bytes, Floats


def signed_step(values: Floats, count: int) -> Floats:
    """f32[n, 1]: the weight of largest magnitude (the first of equals) lies `count` steps below zero."""
    largest = np.abs(values).argmax(axis=1, keepdims=True)
    return np.take_along_axis(values, largest, axis=1) / np.float32(-count)


def span_step(values: Floats, count: int) -> tuple[Floats, Floats]:
    """f32[n, 1] each: `count` steps from the least weight to the greatest, and the least weight."""
    least = values.min(axis=1, keepdims=True)
    with np.errstate(over="ignore", invalid="ignore"):
        return (values.max(axis=1, keepdims=True) - least) / np.float32(count), least


def inverse(step: Floats) -> Floats:
    """1 / step, but 0 where that is not finite: half precision rounds so small a step to zero anyway."""
    with np.errstate(divide="ignore", over="ignore"):
        ratio = np.float32(1) / step
    return np.where(np.isfinite(ratio), ratio, np.float32(0))


def codes(steps: Floats, zero: float, top: int) -> Bytes:
    """u8: `steps + zero` with the fraction cut off, at most `top`."""
    return np.minimum((steps + np.float32(zero)).astype(np.uint8), np.uint8(top))
