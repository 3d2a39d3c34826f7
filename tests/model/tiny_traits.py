"""What a tiny model of each architecture has that a plain one has not."""

from __future__ import annotations

from dataclasses import dataclass

from halfbyte.formats import Typed
from tests.model.tiny_variants import ATTENTION, EXPERTS, VARIANTS, Sizes, Variant

ENCODERS = ("bert", "nomic-bert")
PRE_NORMS = ("attn_norm", "ffn_norm")
FOUR_NORMS = ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")
ENCODER_NORMS = ("attn_output_norm", "layer_output_norm")
POST_NORMS = ("post_attention_norm", "post_ffw_norm")


@dataclass(frozen=True)
class Traits:
    """`norms` are as wide as the model, `qk_norm` is one head or one row wide; `window` is the period of its pattern.

    `fused`: queries, keys and values are one matrix, the gate and what it gates another. A token sees 2 of the
    `experts`. `still`: every so many-th layer does not turn its heads.
    """

    norms: tuple[str, ...] = PRE_NORMS
    biases: tuple[str, ...] = ()
    qk_norm: str | None = None
    window: int | None = None
    tied: bool = False
    fused: bool = False
    experts: int = 0
    still: int = 0


TRAITS = {
    "bert": Traits(norms=ENCODER_NORMS, biases=(*ATTENTION, "ffn_up", "ffn_down", *ENCODER_NORMS)),
    "gemma2": Traits(norms=FOUR_NORMS, window=2, tied=True),
    "gemma3": Traits(norms=FOUR_NORMS, qk_norm="head", window=2, tied=True),
    "gpt-oss": Traits(
        norms=("attn_norm", "post_attention_norm"),
        biases=(*ATTENTION, "ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"),
        window=2,
        experts=EXPERTS,
    ),
    "granite": Traits(),
    "lfm2": Traits(qk_norm="head", tied=True),
    "llama": Traits(),
    "nomic-bert": Traits(norms=ENCODER_NORMS, biases=ENCODER_NORMS),
    "olmo2": Traits(norms=POST_NORMS, qk_norm="row"),
    "phi3": Traits(fused=True, window=0),
    "qwen2": Traits(biases=("attn_q", "attn_k", "attn_v")),
    "qwen3": Traits(qk_norm="head"),
    "qwen3moe": Traits(qk_norm="head", experts=6),
    "smollm3": Traits(still=2),
}

USUAL = tuple(arch for arch in TRAITS if arch not in (*ENCODERS, "gpt-oss", "lfm2"))
"""Decoders that attend in every layer and whose answers change smoothly with what they are made of."""


def metadata_of(arch, n_embd, n_ff, n_layers, n_head, n_head_kv, head_size, window):
    """All keys but those of the tokenizer."""
    traits = TRAITS[arch]
    pairs = {
        "context_length": 256,
        "embedding_length": n_embd,
        "block_count": n_layers,
        "feed_forward_length": n_ff,
        "attention.head_count": n_head,
        "attention.head_count_kv": n_head_kv,
        "attention.key_length": head_size,
        "attention.value_length": head_size,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.freq_base": 10000.0,
    }
    if traits.window is not None:
        pairs |= {"attention.sliding_window": window, "attention.sliding_window_pattern": traits.window}
    if traits.experts:
        pairs |= {"expert_count": traits.experts, "expert_used_count": 2}
    if traits.still:
        pairs["rope.layers"] = Typed([(i + 1) % traits.still > 0 for i in range(n_layers)], "bool")
    sizes = Sizes(n_embd, n_ff, n_layers, n_head, n_head_kv, head_size)
    pairs |= VARIANTS.get(arch, Variant()).keys(sizes)
    general = {"general.architecture": arch, "general.name": f"tiny {arch}"}
    return general | {f"{arch}.{key}": value for key, value in pairs.items()}


def shapes_of(arch, n_embd, n_ff, n_layers, n_q, n_kv, head_size, n_vocab):
    """Tensor names to shapes in GGUF order."""
    shapes = {"token_embd.weight": (n_embd, n_vocab), "output_norm.weight": (n_embd,)}
    shapes["output.weight"] = (n_embd, n_vocab)
    layer = dict.fromkeys(TRAITS[arch].norms, (n_embd,))
    if TRAITS[arch].qk_norm:
        by_head = TRAITS[arch].qk_norm == "head"
        layer |= {"attn_q_norm": (head_size if by_head else n_q,), "attn_k_norm": (head_size if by_head else n_kv,)}
    layer |= attention_shapes(arch, n_embd, n_q, n_kv) | feed_forward_shapes(arch, n_embd, n_ff)
    variant = VARIANTS.get(arch, Variant())
    sizes = Sizes(n_embd, n_ff, n_layers, n_q // head_size, n_kv // head_size, head_size)
    shapes |= {f"{stem}.weight": shape for stem, shape in variant.around(sizes).items()}
    for i in range(n_layers):
        shapes |= {f"blk.{i}.{stem}.weight": shape for stem, shape in (layer | variant.layer(sizes, i)).items()}
    return {name: shape for name, shape in shapes.items() if shape is not None}


def attention_shapes(arch, n_embd, n_q, n_kv):
    """Matrices of a layer's first half."""
    if TRAITS[arch].fused:
        return {"attn_qkv": (n_embd, n_q + 2 * n_kv), "attn_output": (n_q, n_embd)}
    return {
        "attn_q": (n_embd, n_q),
        "attn_k": (n_embd, n_kv),
        "attn_v": (n_embd, n_kv),
        "attn_output": (n_q, n_embd),
    }


def feed_forward_shapes(arch, n_embd, n_ff):
    """Matrices of its second half."""
    if TRAITS[arch].fused:
        return {"ffn_up": (n_embd, 2 * n_ff), "ffn_down": (n_ff, n_embd)}
    matrices = {"gate": (n_embd, n_ff), "up": (n_embd, n_ff), "down": (n_ff, n_embd)}
    experts = TRAITS[arch].experts
    if not experts:
        return {f"ffn_{stem}": shape for stem, shape in matrices.items()}
    router = {"ffn_gate_inp": (n_embd, experts)}
    return router | {f"ffn_{stem}_exps": (*shape, experts) for stem, shape in matrices.items()}
