"""Adapter files with random pairs, as llama.cpp writes them."""

from __future__ import annotations

import numpy as np

from halfbyte.formats import GGUFWriter
from halfbyte.quant import FORMATS

METADATA = {"general.type": "adapter", "adapter.type": "lora", "adapter.lora.alpha": 8.0}


def random_pairs(shapes, rank=4, seed=0, size=0.2):
    """Tensors for matrices [N, M], by their name in the file."""
    tensors = {}
    for number, (base, (n, m)) in enumerate(shapes.items()):
        rng = np.random.default_rng([seed, number])
        tensors[f"{base}.lora_a"] = rng.normal(0, size, (rank, m)).astype(np.float32)
        tensors[f"{base}.lora_b"] = rng.normal(0, size, (n, rank)).astype(np.float32)
    return tensors


def write_adapter(path, tensors, *, arch="llama", format="f32", **metadata):
    """Write `tensors`; metadata that are None are left out. Returns `path`."""
    pairs = METADATA | {"general.architecture": arch} | {k.replace("__", "."): v for k, v in metadata.items()}
    with GGUFWriter(path, {key: value for key, value in pairs.items() if value is not None}) as writer:
        for name, values in tensors.items():
            writer.declare(name, FORMATS[format], values.shape[::-1])
        for name, values in tensors.items():
            writer.write(name, FORMATS[format].encode(values))
    return path


def make_adapter(path, shapes, *, arch="llama", rank=4, seed=0, size=0.2, format="f32", **metadata):
    """Write an adapter for matrices [N, M] by name."""
    return write_adapter(path, random_pairs(shapes, rank, seed, size), arch=arch, format=format, **metadata)
