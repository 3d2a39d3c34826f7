"""OLMo 2 and 3: what a half of a layer makes is normed, not what it is made of; queries and keys are normed by rows.

OLMo 3 has a window on three layers of four.
"""

from __future__ import annotations

from collections.abc import Collection

from ...formats import GGUFFile
from ..arch import Arch
from ..checkpoint import Checkpoint, TensorRule
from ..checkpoint_config import CheckpointConfig
from ..checkpoint_rope import rope_base, rope_metadata, rope_section, rope_type
from ..checkpoint_window import window_metadata
from ..decoder_checkpoint import (
    ATTENTION,
    FEED_FORWARD,
    HEAD_NORMS,
    UNUSED,
    decoder_metadata,
    decoder_tensors,
)
from ..layers import ProgramBuilder
from ..metadata import Metadata
from ..program import Program
from ..read_spec import read_n_rot, read_spec
from ..read_windows import with_windows
from ..rope import plain_rope
from ..spec import ModelSpec

_PERIOD = 4


def read(gguf: GGUFFile, metadata: Metadata) -> ModelSpec:
    """Layers with a window are never stretched."""
    spec = read_spec(gguf, metadata, rope="neox")
    base = metadata.number("rope.freq_base", 10000.0)
    local = plain_rope("neox", read_n_rot(metadata, spec.key_length), metadata.number("rope.freq_base_swa", base))
    return with_windows(spec, metadata, _PERIOD, local)


def build(spec: ModelSpec, tensors: Collection[str]) -> Program:
    """Each half of a layer is normed before it is added."""
    b = ProgramBuilder(spec, tensors)
    x = b.embed()
    for _ in b.layers():
        attended = b.attention(x, norm="rows")
        attended, x = b.asked_rows(attended, x)
        x = b.add(x, b.norm(b.linear(attended, "attn_output", spec.n_embd), "post_attention_norm"))
        x = b.add(x, b.norm(b.feed_forward(x), "post_ffw_norm"))
    return b.finish(x)


NORMS = {"post_attention_layernorm": "post_attention_norm", "post_feedforward_layernorm": "post_ffw_norm"}


def metadata(config: CheckpointConfig) -> dict[str, object]:
    """Layers with a window turn by a base of their own."""
    windows, local = window_metadata(config, period=_PERIOD), rope_section(config, "sliding_attention")
    keys = decoder_metadata(config) | rope_metadata(config)
    if not windows:
        return keys
    if rope_section(config).has("sliding_attention"):
        rope_type(local, ("default",))
    return keys | windows | {"rope.freq_base_swa": rope_base(config, local)}


def tensors(config: CheckpointConfig) -> list[TensorRule]:
    """Rows as they are."""
    return decoder_tensors(config, NORMS | HEAD_NORMS | ATTENTION | FEED_FORWARD)


OLMO2 = Arch(read, build, Checkpoint(metadata, tensors, unused=UNUSED))
