"""Tiny models with the reference as backend, and what their matrices multiply, computed the slow way."""

from __future__ import annotations

import numpy as np

from halfbyte.tools.quantize.calibration import open_tapped, read_window
from halfbyte.tools.quantize.windows import cut_texts

TEXT = "the thing and then another one, in the end: " * 6
WINDOW = 24


def opened(path, **choices):
    return open_tapped(path, **{"window": WINDOW, "backend": "reference", **choices})


def windows_for(model, texts=(TEXT,), most=None):
    return cut_texts(model.tokenizer, texts, model.window, most)


def rows_of(model, windows, value):
    """f64[tokens, M]: a tapped value over all windows."""
    parts = []
    for ids in windows:
        read_window(model, ids)
        parts.append(model.tapped(value).astype(np.float64))
    return np.concatenate(parts)
