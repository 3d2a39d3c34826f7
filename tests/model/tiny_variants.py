"""Keys and tensors of tiny models that are no plain decoder: `VARIANTS`. None leaves out what a plain one has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from halfbyte.formats import Typed

ATTENTION = ("attn_q", "attn_k", "attn_v", "attn_output")
FEED_FORWARD = ("ffn_gate", "ffn_up", "ffn_down")
EXPERTS, USED, TAPS = 5, 2, 3


@dataclass(frozen=True)
class Sizes:
    n_embd: int
    n_ff: int
    n_layers: int
    n_head: int
    n_head_kv: int
    head_size: int


@dataclass(frozen=True)
class Variant:
    """Of `Sizes`: `keys` by name behind the architecture's, `layer` (of a number, too) and `around` shapes by stem."""

    keys: Callable[..., dict[str, object]] = lambda sizes: {}
    layer: Callable[..., dict[str, tuple[int, ...] | None]] = lambda sizes, layer: {}
    around: Callable[..., dict[str, tuple[int, ...] | None]] = lambda sizes: {}


def gemma2_keys(sizes):
    return {"attn_logit_softcapping": 20.0, "final_logit_softcapping": 15.0}


def granite_keys(sizes):
    return {"embedding_scale": 3.0, "residual_scale": 0.4, "attention.scale": 0.2, "logit_scale": 2.5}


def gpt_oss_keys(sizes):
    scaling = {"type": "yarn", "factor": 4.0, "original_context_length": 64}
    return {f"rope.scaling.{key}": value for key, value in scaling.items()}


def gpt_oss_layer(sizes, layer):
    return {"attn_sinks": (sizes.n_head,)}


def filters(layer):
    return layer % 2 == 0


def lfm2_keys(sizes):
    heads = [0 if filters(layer) else sizes.n_head_kv for layer in range(sizes.n_layers)]
    return {"attention.head_count_kv": Typed(heads, "u32"), "shortconv.l_cache": TAPS}


def lfm2_layer(sizes, layer):
    if not filters(layer):
        return {}
    return dict.fromkeys((*ATTENTION, "attn_q_norm", "attn_k_norm")) | {
        "shortconv.in_proj": (sizes.n_embd, 3 * sizes.n_embd),
        "shortconv.conv": (TAPS, sizes.n_embd),
        "shortconv.out_proj": (sizes.n_embd, sizes.n_embd),
    }


def lfm2_around(sizes):
    return {"output_norm": None, "token_embd_norm": (sizes.n_embd,)}


def encoder_keys(sizes):
    absent = ("attention.layer_norm_rms_epsilon", "attention.key_length", "attention.value_length")
    return dict.fromkeys(absent) | {
        "attention.causal": False,
        "attention.layer_norm_epsilon": 1e-12,
        "attention.head_count_kv": sizes.n_head,
        "pooling_type": 1,
    }


def encoder_around(sizes):
    return {
        "output_norm": None,
        "output": None,
        "token_types": (sizes.n_embd, 2),
        "token_embd_norm": (sizes.n_embd,),
    }


def bert_layer(sizes, layer):
    return dict.fromkeys(ATTENTION, (sizes.n_embd, sizes.n_embd)) | {"ffn_gate": None}


def bert_around(sizes):
    return encoder_around(sizes) | {"position_embd": (sizes.n_embd, 256)}


def nomic_bert_layer(sizes, layer):
    one = (sizes.n_embd, sizes.n_embd)
    return dict.fromkeys(ATTENTION) | {"attn_qkv": (sizes.n_embd, 3 * sizes.n_embd), "attn_output": one}


VARIANTS = {
    "bert": Variant(encoder_keys, bert_layer, bert_around),
    "gemma2": Variant(gemma2_keys),
    "gpt-oss": Variant(gpt_oss_keys, gpt_oss_layer),
    "granite": Variant(granite_keys),
    "lfm2": Variant(lfm2_keys, lfm2_layer, lfm2_around),
    "nomic-bert": Variant(encoder_keys, nomic_bert_layer, encoder_around),
}
