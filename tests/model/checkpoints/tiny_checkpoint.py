"""Tiny random checkpoints, made by the library that the architectures come from, and what it answers."""

from __future__ import annotations

import numpy as np
import torch
import transformers

SIZES = {
    "vocab_size": 120,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}


def make(folder, name, *, seed=0, **config):
    """Save a `<name>ForCausalLM`, or the class `name`, as `folder`, float32, and return it; `config` over `SIZES`."""
    torch.manual_seed(seed)
    kind = getattr(transformers, f"{name}ForCausalLM") if isinstance(name, str) else name
    model = kind(kind.config_class(**(SIZES | config), attn_implementation="eager")).eval()
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            scatter(parameter_name, parameter)
    model.save_pretrained(folder)
    return model


def scatter(name, parameter):
    """Norms around what they were, biases that are felt, matrices that keep the size of what goes through them."""
    if parameter.dim() == 1 or name.endswith("bias"):
        parameter.add_(torch.empty_like(parameter).uniform_(-0.4, 0.4))
    else:
        parameter.normal_(0, parameter.shape[-1] ** -0.5)


def answers(model, prompts):
    """Logits f32[T, V] of each prompt by itself."""
    with torch.no_grad():
        return [model(torch.tensor([list(ids)])).logits[0].numpy() for ids in prompts]


def prompts(lengths, seed=1):
    """Random ids."""
    rng = np.random.default_rng(seed)
    return [rng.integers(0, SIZES["vocab_size"], length) for length in lengths]
