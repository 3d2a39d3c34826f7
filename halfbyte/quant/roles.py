"""What a tensor does in a model, told from its name, and which tensors are not worth quantizing."""

from __future__ import annotations

import re
from collections.abc import Sequence

EMBEDDING, OUTPUT, OTHER = "embedding", "output", "other"
ATTN_Q, ATTN_K, ATTN_V, ATTN_OUTPUT = "attn_q", "attn_k", "attn_v", "attn_output"
FFN_GATE, FFN_UP, FFN_DOWN = "ffn_gate", "ffn_up", "ffn_down"

EMBEDDINGS = ("token_embd.weight", "per_layer_token_embd.weight")
OUTPUT_NAME = "output.weight"

# In the order they are looked for. A projection that holds values among others counts as one of values.
_PARTS: tuple[tuple[str, str], ...] = (
    ("attn_qkv.weight", ATTN_V),
    ("attn_kv_b.weight", ATTN_V),
    ("attn_v.weight", ATTN_V),
    ("attn_k.weight", ATTN_K),
    ("attn_q.weight", ATTN_Q),
    ("attn_output.weight", ATTN_OUTPUT),
    ("ffn_up", FFN_UP),
    ("ffn_gate", FFN_GATE),
    ("ffn_down", FFN_DOWN),
)

# Too small to save anything, or so sensitive that any loss shows: norms, routers, positions, convolutions, mixers.
_KEPT_PARTS: tuple[str, ...] = (
    "_norm.weight",
    "ffn_gate_inp.weight",
    "ffn_gate_tid2eid.weight",
    "altup",
    "laurel",
    "per_layer_model_proj",
    "ssm_conv1d",
    "shortconv.conv.weight",
    "indexer.k_proj.weight",
    "indexer.q_proj.weight",
    "time_mix_first.weight",
    "time_mix_w0.weight",
    "time_mix_w1.weight",
    "time_mix_w2.weight",
    "time_mix_v0.weight",
    "time_mix_v1.weight",
    "time_mix_v2.weight",
    "time_mix_a0.weight",
    "time_mix_a1.weight",
    "time_mix_a2.weight",
    "time_mix_g1.weight",
    "time_mix_g2.weight",
    "time_mix_decay_w1.weight",
    "time_mix_decay_w2.weight",
    "time_mix_lerp_fused.weight",
    "attn_rel_b.weight",
    ".position_embd",
    "sam.pos_embd",
    "sam.neck.",
    "sam.net_",
    ".rel_pos",
    ".patch_embd",
    ".patch_merger",
    "a.rvq.codebook",
    "mm.a.code_embd",
)
_KEPT_NAMES: tuple[str, ...] = ("position_embd.weight", "token_types.weight")


def role_of(name: str) -> str:
    """One of the roles above."""
    if name == OUTPUT_NAME:
        return OUTPUT
    if name in EMBEDDINGS:
        return EMBEDDING
    return next((role for part, role in _PARTS if part in name), OTHER)


def layer_of(name: str) -> int:
    """Number of the layer a tensor belongs to, -1 for none."""
    found = re.match(r"blk\.(\d+)\.", name)
    return int(found[1]) if found else -1


def is_quantizable(name: str, shape: Sequence[int]) -> bool:
    """Whether recipes touch a tensor: a weight of two or more dimensions (`shape` in GGUF order)."""
    matrix = any(size > 1 for size in shape[1:])
    kept = name in _KEPT_NAMES or any(part in name for part in _KEPT_PARTS)
    return matrix and name.endswith("weight") and not kept
