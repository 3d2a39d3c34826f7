"""Tiny random models as files: every size a few dozen, every format, a tokenizer that works."""

from __future__ import annotations

import zlib

import numpy as np

from halfbyte.formats import GGUFWriter
from halfbyte.quant import FORMATS
from tests.model.tiny_tokenizer import tokenizer_metadata
from tests.quant.random_blocks import random_blocks

SCALES = {"attn_norm.weight": 0.3, "ffn_norm.weight": 0.3, "output_norm.weight": 0.5}
BIASED = {"llama": (), "qwen2": ("attn_q", "attn_k", "attn_v"), "gemma3": ()}
NORMS = {
    "llama": ("attn_norm", "ffn_norm"),
    "qwen2": ("attn_norm", "ffn_norm"),
    "gemma3": ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"),
}


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
    head_size = head_size or (32 if arch == "gemma3" else n_embd // n_head)
    if n_head * head_size % max(f.block_len for f in used):
        head_size = max(f.block_len for f in used) // n_head
    pairs = metadata_of(arch, n_embd, n_ff, n_layers, n_head, n_head_kv, head_size, window)
    pairs |= tokenizer_metadata(n_vocab)
    pairs = {key: value for key, value in (pairs | (metadata or {})).items() if value is not None}
    shapes = shapes_of(arch, n_embd, n_ff, n_layers, n_head * head_size, n_head_kv * head_size, head_size, n_vocab)
    if tied if tied is not None else arch == "gemma3":
        del shapes["output.weight"]
    for layer in range(n_layers):
        for stem in BIASED[arch] if biases is None else biases:
            shapes[f"blk.{layer}.{stem}.bias"] = (shapes[f"blk.{layer}.{stem}.weight"][1],)
    write(path, pairs, shapes, seed, lambda stem: FORMATS[formats.get(stem, weights)], FORMATS[vectors], tensors or {})
    return path


def tiny_model(folder, arch="llama", **choices):
    """A model for whoever does not care which."""
    return make_tiny_gguf(folder / f"tiny-{arch}.gguf", arch, **choices)


def metadata_of(arch, n_embd, n_ff, n_layers, n_head, n_head_kv, head_size, window):
    pairs = {
        "general.architecture": arch,
        "general.name": f"tiny {arch}",
        f"{arch}.context_length": 256,
        f"{arch}.embedding_length": n_embd,
        f"{arch}.block_count": n_layers,
        f"{arch}.feed_forward_length": n_ff,
        f"{arch}.attention.head_count": n_head,
        f"{arch}.attention.head_count_kv": n_head_kv,
        f"{arch}.attention.key_length": head_size,
        f"{arch}.attention.value_length": head_size,
        f"{arch}.attention.layer_norm_rms_epsilon": 1e-6,
        f"{arch}.rope.freq_base": 10000.0,
    }
    if arch == "gemma3":
        pairs |= {f"{arch}.attention.sliding_window": window, f"{arch}.attention.sliding_window_pattern": 2}
    return pairs


def shapes_of(arch, n_embd, n_ff, n_layers, n_q, n_kv, head_size, n_vocab):
    """Tensor names to shapes in GGUF order."""
    shapes = {"token_embd.weight": (n_embd, n_vocab), "output_norm.weight": (n_embd,)}
    shapes["output.weight"] = (n_embd, n_vocab)
    for layer in range(n_layers):
        at = f"blk.{layer}"
        shapes |= {f"{at}.{stem}.weight": (n_embd,) for stem in NORMS[arch]}
        if arch == "gemma3":
            shapes |= {f"{at}.{stem}.weight": (head_size,) for stem in ("attn_q_norm", "attn_k_norm")}
        shapes |= {
            f"{at}.attn_q.weight": (n_embd, n_q),
            f"{at}.attn_k.weight": (n_embd, n_kv),
            f"{at}.attn_v.weight": (n_embd, n_kv),
            f"{at}.attn_output.weight": (n_q, n_embd),
            f"{at}.ffn_gate.weight": (n_embd, n_ff),
            f"{at}.ffn_up.weight": (n_embd, n_ff),
            f"{at}.ffn_down.weight": (n_ff, n_embd),
        }
    return shapes


def write(path, pairs, shapes, seed, format_of, vectors, overrides):
    data = {}
    for name, shape in shapes.items():
        # A seed of its own: a tensor is the same whatever formats the others have.
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        stem = name.removeprefix(f"blk.{name.split('.')[1]}.").rpartition(".")[0]
        format = format_of(stem) if len(shape) == 2 else vectors
        blocks = shape[0] // format.block_len * (shape[1] if len(shape) == 2 else 1)
        raw = random_blocks(format, blocks, rng) if len(shape) == 2 else vectors.encode(vector(name, shape[0], rng))
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
