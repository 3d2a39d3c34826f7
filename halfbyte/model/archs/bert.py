"""BERT and the embedding models made of it (MiniLM, BGE, E5, GTE, MPNet's kin): norms behind each half of a layer."""

from __future__ import annotations

from collections.abc import Collection

from ...errors import UnsupportedError
from ...formats import GGUFFile
from ..arch import Arch
from ..checkpoint import Checkpoint, TensorRule
from ..checkpoint_config import CheckpointConfig
from ..decoder_checkpoint import block_count, rename
from ..encoder_checkpoint import UNUSED, encoder_metadata
from ..layers import ProgramBuilder
from ..metadata import Metadata
from ..program import Program
from ..read_spec import read_spec
from ..spec import ModelSpec


def read(gguf: GGUFFile, metadata: Metadata) -> ModelSpec:
    """Positions are learnt and added once."""
    return read_spec(gguf, metadata, rope=None, encoder=True)


def build(spec: ModelSpec, tensors: Collection[str]) -> Program:
    """All tokens are of the first type."""
    b = ProgramBuilder(spec, tensors)
    x = b.add(b.embed_first_type(), b.positions())
    x = b.layer_norm(x, "token_embd_norm")
    for i in b.layers():
        attended, x = b.asked_rows(b.attention(x), x)
        x = b.layer_norm(b.add(x, b.linear(attended, "attn_output", spec.n_embd)), "attn_output_norm")
        inner = b.act(b.linear(x, "ffn_up", spec.layers[i].n_ff), "gelu")
        x = b.layer_norm(b.add(x, b.linear(inner, "ffn_down", spec.n_embd)), "layer_output_norm")
    return b.program(x)


def metadata(config: CheckpointConfig) -> dict[str, object]:
    """Raises `UnsupportedError` for another activation than GELU, positions that are not learnt, and decoders."""
    for key, known in (("hidden_act", "gelu"), ("position_embedding_type", "absolute")):
        if config.text(key, known) != known:
            raise UnsupportedError(f"{config.path}: {key} {config.text(key, known)!r} is not supported", known=[known])
    if config.flag("is_decoder", False):
        raise UnsupportedError(f"{config.path}: is_decoder, so attention to the past only, is not supported")
    return encoder_metadata(config)


AROUND = {
    "embeddings.word_embeddings.weight": "token_embd.weight",
    "embeddings.position_embeddings.weight": "position_embd.weight",
    "embeddings.token_type_embeddings.weight": "token_types.weight",
    "embeddings.LayerNorm.weight": "token_embd_norm.weight",
    "embeddings.LayerNorm.bias": "token_embd_norm.bias",
}
LAYER = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}


def tensors(config: CheckpointConfig) -> list[TensorRule]:
    """A model with a head for training has all else below a name of its own."""
    prefix = "" if config.texts("architectures") in ([], ["BertModel"]) else "bert."
    rules = [rename(prefix + source, target) for source, target in AROUND.items()]
    for i in range(block_count(config)):
        for source, target in LAYER.items():
            for kind in ("weight", "bias"):
                rules.append(rename(f"{prefix}encoder.layer.{i}.{source}.{kind}", f"blk.{i}.{target}.{kind}"))
    return rules


BERT = Arch(read, build, Checkpoint(metadata, tensors, unused=UNUSED))
