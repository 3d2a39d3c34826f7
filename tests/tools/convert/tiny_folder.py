"""A tiny llama checkpoint, written byte by byte: so that any of them can be a lie."""

from __future__ import annotations

import json
import struct
from functools import cache

import numpy as np

from tests.tools.convert.tiny_tokenizers import byte_level, checkpoint

D, F, HEADS, KV, LAYERS = 64, 96, 4, 2, 2
ITEM = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E8M0": 1, "I64": 8, "I32": 4, "I8": 1, "U8": 1}
OF_NUMPY = {"f8": "F64", "f4": "F32", "f2": "F16", "i8": "I64", "i4": "I32", "i1": "I8", "u1": "U8"}


@cache
def tokenizer():
    return byte_level()


def config(**changes):
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": D,
        "intermediate_size": F,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV,
        "max_position_embeddings": 128,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "vocab_size": tokenizer().get_vocab_size(),
        "tie_word_embeddings": False,
        "eos_token_id": 420,
    } | changes


def tensors(seed=0):
    """Random weights by name."""
    rng = np.random.default_rng(seed)

    def matrix(n, m):
        return rng.normal(0, m**-0.5, (n, m)).astype(np.float32)

    vocab, head = tokenizer().get_vocab_size(), D // HEADS
    made = {"model.embed_tokens.weight": matrix(vocab, D)}
    for i in range(LAYERS):
        at = f"model.layers.{i}"
        made |= {
            f"{at}.input_layernorm.weight": np.ones(D, np.float32),
            f"{at}.self_attn.q_proj.weight": matrix(D, D),
            f"{at}.self_attn.k_proj.weight": matrix(KV * head, D),
            f"{at}.self_attn.v_proj.weight": matrix(KV * head, D),
            f"{at}.self_attn.o_proj.weight": matrix(D, D),
            f"{at}.post_attention_layernorm.weight": np.ones(D, np.float32),
            f"{at}.mlp.gate_proj.weight": matrix(F, D),
            f"{at}.mlp.up_proj.weight": matrix(F, D),
            f"{at}.mlp.down_proj.weight": matrix(D, F),
        }
    return made | {"model.norm.weight": np.ones(D, np.float32), "lm_head.weight": matrix(vocab, D)}


def header_of(arrays):
    """Of the file that `arrays`, by name an array or a pair of a dtype and an array, would make."""
    header, offset = {}, 0
    for name, given in arrays.items():
        dtype, array = given if isinstance(given, tuple) else (OF_NUMPY[given.dtype.str[1:]], given)
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    return header


def data_of(arrays):
    return b"".join((given[1] if isinstance(given, tuple) else given).tobytes() for given in arrays.values())


def write_safetensors(path, arrays, header=None):
    """`header`: an object or bytes to write instead of the true one."""
    header = header_of(arrays) if header is None else header
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data_of(arrays))


def make_folder(folder, arrays=None, **changes):
    """A whole checkpoint; `changes` are of the config."""
    folder.mkdir(exist_ok=True)
    checkpoint(folder, tokenizer(), config=config(**changes))
    write_safetensors(folder / "model.safetensors", tensors() if arrays is None else arrays)
    return folder
