"""A model of a real one's shape with random weights: `python -m bench.big_model FILE [--layers N] [--format F]`

Llama 3 8B's sizes, its vocabulary filled up with unused tokens. A matrix has 256 different rows, over and over: each is
read from its own place in the file, and nothing else matters for speed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from halfbyte.formats import GGUFWriter, Typed
from halfbyte.quant import FORMATS
from halfbyte.quant.block import BlockFormat

WIDTH, FEED_FORWARD, HEADS, KV_HEADS, HEAD, VOCABULARY = 4096, 14336, 32, 8, 128, 128256
DIFFERENT_ROWS = 256


def shapes(layers: int) -> dict[str, tuple[int, ...]]:
    """GGUF's shapes, columns first."""
    found: dict[str, tuple[int, ...]] = {"token_embd.weight": (WIDTH, VOCABULARY)}
    for layer in range(layers):
        sizes = {
            "attn_norm": (WIDTH,),
            "attn_q": (WIDTH, HEADS * HEAD),
            "attn_k": (WIDTH, KV_HEADS * HEAD),
            "attn_v": (WIDTH, KV_HEADS * HEAD),
            "attn_output": (HEADS * HEAD, WIDTH),
            "ffn_norm": (WIDTH,),
            "ffn_gate": (WIDTH, FEED_FORWARD),
            "ffn_up": (WIDTH, FEED_FORWARD),
            "ffn_down": (FEED_FORWARD, WIDTH),
        }
        found |= {f"blk.{layer}.{stem}.weight": shape for stem, shape in sizes.items()}
    return found | {"output_norm.weight": (WIDTH,), "output.weight": (WIDTH, VOCABULARY)}


def metadata(layers: int) -> dict[str, object]:
    """Of the architecture and of a tokenizer that knows bytes."""
    spare = iter(range(256, 512))
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    tokens = [chr(byte) if byte in printable else chr(next(spare)) for byte in range(256)]
    tokens += ["<|end|>", "th", *(f"<unused{i}>" for i in range(VOCABULARY - 258))]
    types = np.array([1] * 256 + [3, 1] + [5] * (VOCABULARY - 258), np.int32)
    sizes = {
        "block_count": layers,
        "context_length": 131072,
        "embedding_length": WIDTH,
        "feed_forward_length": FEED_FORWARD,
        "attention.head_count": HEADS,
        "attention.head_count_kv": KV_HEADS,
        "rope.dimension_count": HEAD,
        "vocab_size": VOCABULARY,
    }
    return {
        "general.architecture": "llama",
        **{f"llama.{key}": Typed(value, "u32") for key, value in sizes.items()},
        "llama.rope.freq_base": Typed(500000.0, "f32"),
        "llama.attention.layer_norm_rms_epsilon": Typed(1e-5, "f32"),
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": Typed(types, "i32"),
        "tokenizer.ggml.merges": ["t h"],
        "tokenizer.ggml.bos_token_id": Typed(256, "u32"),
        "tokenizer.ggml.eos_token_id": Typed(256, "u32"),
        "tokenizer.ggml.add_bos_token": False,
    }


def rows_of(format: BlockFormat, columns: int, rng: np.random.Generator) -> np.ndarray:
    """u8[rows, bytes] of so many rows that products neither grow nor vanish from layer to layer."""
    blocks = rng.standard_normal((DIFFERENT_ROWS, columns), np.float32) * columns**-0.5
    if format.encode_blocks is not None or format.encoder is None:
        return format.encode(blocks)
    from halfbyte.cpu_kernels.encoding import CompiledSearch
    from halfbyte.quant.encode_rows import encode_rows

    return encode_rows(format, blocks, None, CompiledSearch())


def write(path: Path, layers: int, format_name: str) -> None:
    """Write the file."""
    rng, format = np.random.default_rng(0), FORMATS[format_name]
    known: dict[int, np.ndarray] = {}
    sizes = shapes(layers)
    with GGUFWriter(path, metadata(layers)) as writer:
        for name, shape in sizes.items():
            writer.declare(name, format if len(shape) > 1 else FORMATS["f32"], shape)
        for name, shape in sizes.items():
            if len(shape) == 1:
                writer.write(name, np.ones(shape, np.float32))
                continue
            if shape[0] not in known:
                known[shape[0]] = rows_of(format, shape[0], rng)
            rows = known[shape[0]]
            writer.write(name, np.tile(rows, (-(-shape[1] // len(rows)), 1))[: shape[1]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--format", default="q4_k")
    args = parser.parse_args()
    write(args.file, args.layers, args.format)


if __name__ == "__main__":
    main()
