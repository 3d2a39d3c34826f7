"""A tiny Llama checkpoint, written without the library that would load it."""

from __future__ import annotations

import json

import torch
from safetensors.torch import save_file

from tests.tools.convert import tiny_tokenizers

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
}


def tensors(n_vocab, dtype=torch.bfloat16):
    """Random weights by name."""
    generator = torch.Generator().manual_seed(0)

    def matrix(n, m):
        return (torch.randn(n, m, generator=generator) * 0.2).to(dtype)

    found = {
        "model.embed_tokens.weight": matrix(n_vocab, 64),
        "lm_head.weight": matrix(n_vocab, 64),
        "model.norm.weight": torch.ones(64, dtype=dtype),
    }
    for i in range(CONFIG["num_hidden_layers"]):
        at = f"model.layers.{i}"
        found |= {
            f"{at}.self_attn.q_proj.weight": matrix(64, 64),
            f"{at}.self_attn.k_proj.weight": matrix(32, 64),
            f"{at}.self_attn.v_proj.weight": matrix(32, 64),
            f"{at}.self_attn.o_proj.weight": matrix(64, 64),
            f"{at}.mlp.gate_proj.weight": matrix(96, 64),
            f"{at}.mlp.up_proj.weight": matrix(96, 64),
            f"{at}.mlp.down_proj.weight": matrix(64, 96),
            f"{at}.input_layernorm.weight": torch.ones(64, dtype=dtype),
            f"{at}.post_attention_layernorm.weight": torch.ones(64, dtype=dtype),
        }
    return found


def save(folder, *, dtype=torch.bfloat16, shards=1, binary=False, config=None, change=None):
    """Write the checkpoint with a tokenizer into `folder`, which is returned; `change(tensors)` first."""
    tokenizer = tiny_tokenizers.byte_level()
    tokenizer.save(str(folder / "tokenizer.json"))
    n_vocab = tokenizer.get_vocab_size()
    settings = {**CONFIG, "vocab_size": n_vocab, **(config or {})}
    (folder / "config.json").write_text(json.dumps(settings))
    found = tensors(n_vocab, dtype)
    if change is not None:
        change(found)
    if binary:
        torch.save(found, folder / "pytorch_model.bin")
    elif shards == 1:
        save_file(found, folder / "model.safetensors")
    else:
        save_shards(folder, found, shards)
    return folder


def save_shards(folder, found, count):
    places = {name: f"model-{i % count + 1:05d}-of-{count:05d}.safetensors" for i, name in enumerate(found)}
    for file in set(places.values()):
        save_file({name: found[name] for name in found if places[name] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
