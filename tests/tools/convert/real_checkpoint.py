"""SmolLM2 as the checkpoint it was made from, rebuilt from its file: bf16 weights and a `tokenizer.json`."""

from __future__ import annotations

import json

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from halfbyte.formats import open_gguf

LAYER = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
AROUND = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}
HEAD_SIZE = 64


def rebuild(path, folder):
    """Write the checkpoint of the GGUF file at `path` into `folder`."""
    with open_gguf(path) as file:
        save_file({theirs(name): weight(file, name) for name in file.tensors}, folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps(config(file.metadata)))
        tokenizer(file.metadata).save(str(folder / "tokenizer.json"))
        about = {"chat_template": file.metadata["tokenizer.chat_template"], "eos_token": "<|im_end|>"}
        (folder / "tokenizer_config.json").write_text(json.dumps(about))
    return folder


def theirs(name):
    if name in AROUND:
        return AROUND[name]
    _, layer, stem, _ = name.split(".")
    return f"model.layers.{layer}.{LAYER[stem]}.weight"


def weight(file, name):
    info = file.tensors[name]
    values = info.format.decode(file.tensor_data(name)).reshape(info.shape[::-1])
    if name.endswith(("attn_q.weight", "attn_k.weight")):
        halves = values.reshape(-1, HEAD_SIZE // 2, 2, values.shape[1]).swapaxes(1, 2)
        values = np.ascontiguousarray(halves.reshape(values.shape))
    return torch.tensor(values).to(torch.bfloat16)


def config(metadata):
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": metadata["llama.embedding_length"],
        "intermediate_size": metadata["llama.feed_forward_length"],
        "num_hidden_layers": metadata["llama.block_count"],
        "num_attention_heads": metadata["llama.attention.head_count"],
        "num_key_value_heads": metadata["llama.attention.head_count_kv"],
        "max_position_embeddings": metadata["llama.context_length"],
        "rms_norm_eps": metadata["llama.attention.layer_norm_rms_epsilon"],
        "rope_theta": metadata["llama.rope.freq_base"],
        "vocab_size": len(metadata["tokenizer.ggml.tokens"]),
        "tie_word_embeddings": True,
    }


def tokenizer(metadata):
    tokens = metadata["tokenizer.ggml.tokens"].tolist()
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"].tolist()]
    made = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), level])
    made.decoder = decoders.ByteLevel()
    control = np.flatnonzero(np.asarray(metadata["tokenizer.ggml.token_type"]) == 3)
    made.add_special_tokens([AddedToken(tokens[i], special=True, normalized=False) for i in control])
    return made
