"""PEFT adapters of tiny checkpoints, made by the library that trains them."""

from __future__ import annotations

import warnings

import numpy as np
import peft
import torch
from transformers import AutoModelForCausalLM

MATRICES = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
IDS = [[1, 17, 5, 3, 42, 8, 8, 30, 2, 11, 60, 7]]


def save_adapter(base, folder, *, seed=0, config=None, **choices):
    """Wrap the checkpoint in `base`, make every B random, write the adapter to `folder`.

    Returns f64[T, V]: logits of `IDS` with it.
    """
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32, attn_implementation="eager")
    settings = {"r": 4, "lora_alpha": 6, "target_modules": MATRICES} | choices
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of one library to the other
        wrapped = peft.get_peft_model(model, config or peft.LoraConfig(**settings)).eval()
        for name, values in wrapped.named_parameters():
            if ".lora_" in name:
                values.copy_(0.3 * torch.randn(values.shape))
        wrapped.save_pretrained(folder)
        return wrapped(torch.tensor(IDS)).logits[0].double().numpy()


def plain_logits(base):
    """f64[T, V] without adapters."""
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad():
        return model(torch.tensor(IDS)).logits[0].double().numpy()


def logits_of(llm, adapters=None):
    """f32[T, V] of `IDS`."""
    return np.asarray(llm.logits(IDS[0], adapters))
