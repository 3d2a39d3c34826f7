"""Nomic's BERT (nomic-embed-text): positions turn heads, feed-forwards are gated, nothing but norms has a bias.

Checkpoints have the names of its first code, q, k and v in one matrix, whoever wrote them.
"""

from __future__ import annotations

from collections.abc import Collection

from ...errors import UnsupportedError
from ...formats import GGUFFile
from ..arch import Arch
from ..checkpoint import Checkpoint, TensorRule
from ..checkpoint_config import CheckpointConfig
from ..checkpoint_rope import rope_metadata
from ..decoder_checkpoint import MAX_LAYERS, rename
from ..encoder_checkpoint import UNUSED, encoder_metadata, sentence_metadata
from ..layers import ProgramBuilder
from ..metadata import Metadata
from ..program import Program
from ..read_spec import read_spec
from ..spec import ModelSpec

_ROPE_BASE = 1000.0


def read(gguf: GGUFFile, metadata: Metadata) -> ModelSpec:
    """Halves of a head turn."""
    return read_spec(gguf, metadata, rope="neox", encoder=True)


def build(spec: ModelSpec, tensors: Collection[str]) -> Program:
    """All tokens are of the first type."""
    b = ProgramBuilder(spec, tensors)
    x = b.layer_norm(b.embed_first_type(), "token_embd_norm")
    for _ in b.layers():
        attended, x = b.asked_rows(b.attention(x), x)
        x = b.layer_norm(b.add(x, b.linear(attended, "attn_output", spec.n_embd)), "attn_output_norm")
        x = b.layer_norm(b.add(x, b.feed_forward(x)), "layer_output_norm")
    return b.program(x)


def metadata(config: CheckpointConfig) -> dict[str, object]:
    """Configs of the first code and of transformers; raises `UnsupportedError` for a gate without SiLU."""
    act = config.text("hidden_act", config.text("activation_function", "silu"))
    if act not in ("silu", "swiglu"):
        raise UnsupportedError(f"{config.path}: activation {act!r} is not supported", known=["silu", "swiglu"])
    if not config.has("n_embd"):
        return encoder_metadata(config) | rope_metadata(config, base=_ROPE_BASE)
    return sentence_metadata(config) | {
        "context_length": config.integer("n_positions"),
        "embedding_length": config.integer("n_embd"),
        "block_count": _layers(config),
        "feed_forward_length": config.integer("n_inner"),
        "attention.head_count": config.integer("n_head"),
        "attention.layer_norm_epsilon": config.number("layer_norm_epsilon", 1e-12),
        "rope.freq_base": config.number("rotary_emb_base", _ROPE_BASE),
        "vocab_size": config.integer("vocab_size"),
    }


AROUND = {
    "embeddings.word_embeddings": "token_embd",
    "embeddings.token_type_embeddings": "token_types",
    "emb_ln": "token_embd_norm",
}
LAYER = {
    "attn.Wqkv": "attn_qkv",
    "attn.out_proj": "attn_output",
    "mlp.fc12": "ffn_gate",
    "mlp.fc11": "ffn_up",
    "mlp.fc2": "ffn_down",
    "norm1": "attn_output_norm",
    "norm2": "layer_output_norm",
}


def tensors(config: CheckpointConfig) -> list[TensorRule]:
    """Only norms have biases."""
    stems = dict(AROUND)
    for i in range(_layers(config)):
        stems |= {f"encoder.layers.{i}.{source}": f"blk.{i}.{target}" for source, target in LAYER.items()}
    rules = [rename(f"{source}.weight", f"{target}.weight") for source, target in stems.items()]
    return rules + [
        rename(f"{source}.bias", f"{target}.bias") for source, target in stems.items() if target.endswith("norm")
    ]


def _layers(config: CheckpointConfig) -> int:
    return config.integer("n_layer" if config.has("n_embd") else "num_hidden_layers", high=MAX_LAYERS)


NOMIC_BERT = Arch(read, build, Checkpoint(metadata, tensors, unused=UNUSED))
