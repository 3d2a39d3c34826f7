"""A checkpoint as a GGUF file, by the rules of its architecture."""

from __future__ import annotations

import json

import numpy as np
import safetensors.numpy

from halfbyte.formats import GGUFWriter
from halfbyte.model.archs import ARCHS, CLASSES
from halfbyte.model.checkpoint_config import CheckpointConfig
from halfbyte.quant import FORMATS


def convert(folder):
    """Write `model.gguf` into the folder and return its path."""
    config = CheckpointConfig(json.loads((folder / "config.json").read_text()), folder / "config.json")
    arch = CLASSES[config.texts("architectures")[0]]
    description = ARCHS[arch].checkpoint
    source = safetensors.numpy.load_file(folder / "model.safetensors")
    tensors = dict(description.computed(config))
    for rule in description.tensors(config):
        parts = [shaped(rule, source.pop(name)) for name in rule.sources if name in source]
        if parts or not rule.optional:
            assert len(parts) == len(rule.sources), rule
            tensors[rule.target] = np.stack(parts) if rule.stacked else parts[0]
    metadata = {f"{arch}.{key}": value for key, value in description.metadata(config).items()}
    config.raise_problems()
    assert not source, sorted(source)
    path = folder / "model.gguf"
    with GGUFWriter(path, {"general.architecture": arch} | metadata) as writer:
        for name, values in tensors.items():
            writer.declare(name, FORMATS["f32"], values.shape[::-1])
        for name, values in tensors.items():
            writer.write(name, np.ascontiguousarray(values))
    return path


def shaped(rule, values):
    """One source as the rule wants it."""
    values = values.swapaxes(-1, -2) if rule.transposed else values
    values = values if rule.rows is None else values[rule.rows(len(values))]
    values = values if rule.columns is None else values[..., rule.columns(values.shape[-1])]
    return values if rule.change is None else rule.change(values)
