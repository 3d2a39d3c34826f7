"""What the checkpoints of most decoders have in common: keys of the config, names of the tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from .checkpoint import Choice, TensorRule
from .checkpoint_config import CheckpointConfig

MAX_LAYERS = 512
MAX_HEAD_SIZE = 4096
MAX_EXPERTS = 1024
UNUSED = (r".*\.rotary_emb\.inv_freq", r".*\.attn\.bias", r".*\.masked_bias", r".*\.attention\.(bias|masked_bias)")

ATTENTION = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
}
FEED_FORWARD = {"mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
HEAD_NORMS = {"self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm"}
PRE_NORMS = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}


def decoder_metadata(config: CheckpointConfig) -> dict[str, object]:
    """Sizes under the names that most configs have; the rope is `rope_metadata`'s."""
    heads = config.integer("num_attention_heads")
    metadata: dict[str, object] = {
        "context_length": config.integer("max_position_embeddings"),
        "embedding_length": config.integer("hidden_size"),
        "block_count": block_count(config),
        "feed_forward_length": config.integer("intermediate_size"),
        "attention.head_count": heads,
        "attention.head_count_kv": config.integer("num_key_value_heads", heads),
        "attention.layer_norm_rms_epsilon": config.number("rms_norm_eps", 1e-6),
        "vocab_size": config.integer("vocab_size"),
    }
    size = head_size(config)
    return metadata | {"attention.key_length": size, "attention.value_length": size}


def block_count(config: CheckpointConfig) -> int:
    """Layers."""
    return config.integer("num_hidden_layers", high=MAX_LAYERS)


def head_size(config: CheckpointConfig) -> int:
    """Channels of a head, whether or not the config gives them."""
    width, heads = config.integer("hidden_size"), config.integer("num_attention_heads")
    if not config.has("head_dim") and width % heads:
        config.problem("num_attention_heads", f"is {heads}, which does not divide the width of {width}")
    return config.integer("head_dim", max(1, width // heads), high=MAX_HEAD_SIZE)


def decoder_tensors(
    config: CheckpointConfig, layer: Mapping[str, str], *, biases: Iterable[str] = (), prefix: str = "model."
) -> list[TensorRule]:
    """Rules for `layer`, stems of a layer's tensors in the checkpoint to those in the file, and for what is around.

    Those in `biases` have one, by their stem in the file; without one a bias may be there all the same. A config that
    does not say whether the head is the embedding leaves it to the tensors.
    """
    tied = config.flag("tie_word_embeddings", True)
    rules = [
        rename(f"{prefix}embed_tokens.weight", "token_embd.weight"),
        rename(f"{prefix}norm.weight", "output_norm.weight"),
        rename("lm_head.weight", "output.weight", optional=tied),
        rename("lm_head.bias", "output.bias", optional=True),
    ]
    for i in range(block_count(config)):
        rules += layer_tensors(i, layer, biases=biases, prefix=prefix)
    return rules


def layer_tensors(
    i: int, layer: Mapping[str, str], *, biases: Iterable[str] = (), prefix: str = "model."
) -> list[TensorRule]:
    """Rules for the tensors of layer `i`, as `decoder_tensors` has them."""
    rules = []
    for source, target in layer.items():
        at, to = f"{prefix}layers.{i}.{source}", f"blk.{i}.{target}"
        has_bias = target in biases
        rules.append(rename(f"{at}.weight", f"{to}.weight"))
        rules.append(rename(f"{at}.bias", f"{to}.bias", optional=not has_bias))
    return rules


def rename(source: str, target: str, *, optional: bool = False) -> TensorRule:
    """The tensor as it is."""
    return TensorRule(target, (source,), optional=optional)


def interleaved_heads(head_size: int) -> Choice:
    """Rows of queries or keys that turn by halves of a head, for a program that turns neighbours.

    Of each head, row i of the first half is followed by row i of the second.
    """

    def rows(count: int) -> NDArray[np.intp]:
        return np.arange(count).reshape(-1, 2, head_size // 2).swapaxes(1, 2).reshape(-1)

    return rows
