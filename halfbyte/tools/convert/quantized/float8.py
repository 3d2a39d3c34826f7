"""`FLOAT8`: what the 256 codes of each 8-bit float mean (OCP 8-bit floating point, OCP microscaling)."""

from __future__ import annotations

import numpy as np

from ....quant.block import Floats


def _e4m3() -> Floats:
    code = np.arange(256)
    exponent, mantissa = np.divmod(code & 127, 8)
    whole = np.where(exponent > 0, mantissa + 8, mantissa).astype(np.float32)
    values: Floats = np.ldexp(np.where(code < 128, whole, -whole), np.maximum(exponent, 1) - 10)
    values[[0x7F, 0xFF]] = np.nan
    return values


def _e5m2() -> Floats:
    return (np.arange(256, dtype=np.uint16) << np.uint16(8)).view(np.float16).astype(np.float32)


def _e8m0() -> Floats:
    values: Floats = np.ldexp(np.float32(1), np.arange(256) - 127, dtype=np.float32)
    values[255] = np.nan
    return values


with np.errstate(over="ignore"):
    FLOAT8: dict[str, Floats] = {"F8_E4M3": _e4m3(), "F8_E5M2": _e5m2(), "F8_E8M0": _e8m0()}
