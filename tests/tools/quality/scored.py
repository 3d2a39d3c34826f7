"""Figures worked out anew, in float64 from whole windows of logits: what `measure` is compared with."""

from __future__ import annotations

import numpy as np


def log_softmax(logits):
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def second_halves(model, ids, length, bos_id=None):
    """Log-probabilities f64[n, V] of all scored tokens, and what came i32[n]."""
    found, came = [], []
    for start in range(0, len(ids) - length + 1, length):
        window = ids[start : start + length].copy()
        if bos_id is not None:
            window[0] = bos_id
        rows = np.arange(length // 2, length - 1, dtype=np.int32)
        found.append(log_softmax(model.logits(window, rows)))
        came.append(window[rows + 1])
    return np.concatenate(found), np.concatenate(came)


def perplexity(found, came):
    """Perplexity and its standard error."""
    surprise = -found[np.arange(len(came)), came]
    value = np.exp(surprise.mean())
    return value, value * surprise.std() / np.sqrt(len(came) - 1)


def divergences(base, model):
    return (np.exp(base) * (base - model)).sum(axis=1)
