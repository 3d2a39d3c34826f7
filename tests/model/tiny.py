"""Tiny random models as files: every size a few dozen, every format, a tokenizer that works."""

from __future__ import annotations

import math
import zlib

import numpy as np

from halfbyte.formats import GGUFWriter
from halfbyte.quant import FORMATS
from tests.model.tiny_tokenizer import tokenizer_metadata
from tests.model.tiny_traits import TRAITS, metadata_of, shapes_of
from tests.quant.random_blocks import random_blocks

FLOATS = ("shortconv.conv", "position_embd", "token_types")
"""Stems of matrices that no file has in blocks."""
SCALES = {"attn_norm.weight": 0.3, "ffn_norm.weight": 0.3, "output_norm.weight": 0.5}


def make_tiny_gguf(
    path,
    arch="llama",
    seed=0,
    weights="f32",
    *,
    vectors="f32",
    formats=None,
    n_embd=None,
    n_ff=None,
    n_layers=3,
    n_head=4,
    n_head_kv=2,
    head_size=None,
    n_vocab=300,
    window=24,
    tied=None,
    biases=None,
    metadata=None,
    tensors=None,
):
    """Write a model and return `path`.

    Matrices have the format `weights`, or what `formats` says for a stem such as "attn_q", "ffn_down", "token_embd" or
    "output"; norms and biases are `vectors`. Sizes default to the smallest that fit the formats. `biases` are stems
    that get one. `metadata` and `tensors` override: a value replaces or adds, None leaves out; a tensor is f32
    [rows, columns] or [columns].
    """
    formats = formats or {}
    used = [FORMATS[name] for name in (weights, *formats.values())]
    n_embd = n_embd or max(64, *(f.block_len for f in used))
    n_ff = n_ff or 2 * n_embd
    head_size = head_size or (32 if arch.startswith("gemma") else n_embd // n_head)
    if n_head * head_size % max(f.block_len for f in used):
        head_size = max(f.block_len for f in used) // n_head
    pairs = metadata_of(arch, n_embd, n_ff, n_layers, n_head, n_head_kv, head_size, window)
    pairs |= tokenizer_metadata(n_vocab)
    pairs = {key: value for key, value in (pairs | (metadata or {})).items() if value is not None}
    shapes = shapes_of(arch, n_embd, n_ff, n_layers, n_head * head_size, n_head_kv * head_size, head_size, n_vocab)
    if tied if tied is not None else TRAITS[arch].tied:
        del shapes["output.weight"]
    for layer in range(n_layers):
        for stem in TRAITS[arch].biases if biases is None else biases:
            weight = shapes[f"blk.{layer}.{stem}.weight"]
            shapes[f"blk.{layer}.{stem}.bias"] = weight[1:] or weight
    write(path, pairs, shapes, seed, lambda stem: FORMATS[formats.get(stem, weights)], FORMATS[vectors], tensors or {})
    return path


def tiny_model(folder, arch="llama", **choices):
    """A model for whoever does not care which."""
    return make_tiny_gguf(folder / f"tiny-{arch}.gguf", arch, **choices)


def write(path, pairs, shapes, seed, format_of, vectors, overrides):
    data = {}
    for name, shape in shapes.items():
        # A seed of its own: a tensor is the same whatever formats the others have.
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        stem = name.removeprefix(f"blk.{name.split('.')[1]}.").rpartition(".")[0]
        if len(shape) == 1 or name.endswith(".bias"):
            format, raw = vectors, vectors.encode(vector(name, math.prod(shape), rng))
        else:
            format = vectors if stem in FLOATS else format_of(stem)
            raw = random_blocks(format, math.prod(shape) // format.block_len, rng)
        data[name] = (format, shape, raw)
    for name, values in overrides.items():
        data.pop(name, None)
        if values is not None:
            values = np.asarray(values, np.float32)
            data[name] = (FORMATS["f32"], values.shape[::-1], values)
    with GGUFWriter(path, pairs) as writer:
        for name, (format, shape, _) in data.items():
            writer.declare(name, format, shape)
        for name, (_, _, raw) in data.items():
            writer.write(name, raw)


def vector(name, n, rng):
    """A bias, or a norm weight small enough that random matrices do not saturate what follows."""
    if name.endswith(".bias"):
        return rng.normal(0, 0.3, n).astype(np.float32)
    scale = next((s for suffix, s in SCALES.items() if name.endswith(suffix)), 1.0)
    return (rng.uniform(0.7, 1.3, n) * scale).astype(np.float32)
