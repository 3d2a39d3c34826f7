"""A GGUF file with a byte vocabulary and a few tensors: enough to look into, not to run."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from halfbyte.formats import GGUFWriter, Typed
from halfbyte.quant.formats import FORMATS
from halfbyte.text.byte_alphabet import BYTE_OF_CHAR

CONTROL, NORMAL = 3, 1


def write_small(path: Path, architecture: str = "unheard-of") -> Path:
    """Tokens are the 256 bytes, `he`, and the control tokens `<s>` (first of a text) and `</s>`."""
    tokens = [*sorted(BYTE_OF_CHAR, key=lambda letter: BYTE_OF_CHAR[letter]), "he", "<s>", "</s>"]
    metadata = {
        "general.architecture": architecture,
        "general.name": "small\x1b[31m",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": Typed([NORMAL] * 257 + [CONTROL] * 2, "i32"),
        "tokenizer.ggml.merges": ["h e"],
        "tokenizer.ggml.bos_token_id": Typed(257, "u32"),
        "tokenizer.ggml.eos_token_id": Typed(258, "u32"),
        "tokenizer.ggml.add_bos_token": True,
        "x.eps": Typed(1e-6, "f32"),
        "x.nan": float("nan"),
        "x.text": "long " * 100,
    }
    with GGUFWriter(path, metadata) as writer:
        for name, kind, shape in (("a", "q8_0", (64, 3)), ("b", "f32", (5,))):
            writer.declare(name, FORMATS[kind], shape)
        writer.write("a", np.zeros((3, 68), np.uint8))
        writer.write("b", np.zeros(20, np.uint8))
    return path
