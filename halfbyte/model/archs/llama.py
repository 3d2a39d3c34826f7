"""Llama 2 and 3, Mistral, SmolLM2, TinyLlama, Yi: the plain pre-norm decoder."""

from __future__ import annotations

from collections.abc import Collection

from ...formats import GGUFFile
from ..arch import Arch
from ..layers import ProgramBuilder
from ..metadata import Metadata
from ..program import Program
from ..read_spec import read_spec
from ..rope_factors import read_rope_factors
from ..spec import ModelSpec


def read(gguf: GGUFFile, metadata: Metadata) -> ModelSpec:
    """Llama 3 stretches its context by factors that the file holds as a tensor."""
    return read_spec(gguf, metadata, rope="norm", factors=read_rope_factors(gguf, metadata))


def build(spec: ModelSpec, tensors: Collection[str]) -> Program:
    """Biases and a head of its own are there where the file has them."""
    b = ProgramBuilder(spec, tensors)
    x = b.embed()
    for _ in b.layers():
        attended = b.attention(b.norm(x, "attn_norm"))
        attended, x = b.asked_rows(attended, x)
        x = b.add(x, b.linear(attended, "attn_output", spec.n_embd))
        x = b.add(x, b.feed_forward(b.norm(x, "ffn_norm")))
    return b.finish(x)


LLAMA = Arch(read, build)
