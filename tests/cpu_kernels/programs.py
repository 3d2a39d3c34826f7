"""Tiny models on the CPU backend, and the reference that rounds activations as the kernels do."""

from __future__ import annotations

import numpy as np

from halfbyte.cpu_kernels import executable
from halfbyte.model import reference_ops
from halfbyte.model.program import Linear
from halfbyte.model.reference import ReferenceExecutable
from tests.cpu_kernels.kernel_sets import DETECTED, ready
from tests.cpu_kernels.products import rounded, takes_rounded
from tests.model.batches import run_all, whole_prompt_batches

ARCHS = ("llama", "qwen2", "gemma3")
"""Architectures that together have what the kernels of a decoder do; the others put it together in other ways."""
VOCAB = 300
LENGTH = 70
IDS = np.random.default_rng(1).integers(0, VOCAB, LENGTH)
PAGE_LEN, N_PAGES = 16, 12
MIXED = {
    "weights": "q4_k",
    "formats": {"attn_v": "q8_0", "attn_output": "q5_0", "ffn_down": "q6_k", "token_embd": "q8_0", "output": "q8_0"},
}
"""Formats as they come together in a file."""


def build(model, *, isa_name=DETECTED, threads=1, kv=None):
    ready(isa_name)
    sizes = {"n_pages": N_PAGES, "max_tokens": len(IDS)}
    return executable.build(model.program, model.weights, **sizes, isa=isa_name, threads=threads, kv=kv)


def logits_of(runner, chunks=(LENGTH,), pages=None):
    """f32[70, V] of the whole prompt."""
    return run_all(runner, whole_prompt_batches(IDS, PAGE_LEN, chunks, pages), VOCAB)


def reference_logits(model, chunks=(LENGTH,)):
    return logits_of(ReferenceExecutable(model.program, model.weights, n_pages=N_PAGES), chunks)


def rounding_logits(model, monkeypatch, chunks=(LENGTH,)):
    """Like `reference_logits`, with the inputs of quantized matrices rounded as the kernels round them."""
    linear = reference_ops.OPS[Linear]

    def rounding_linear(op, state):
        exact = state.values[op.x]
        if takes_rounded(state.weights[op.weight]):
            state.values[op.x] = rounded(exact)
        linear(op, state)
        state.values[op.x] = exact

    with monkeypatch.context() as patch:
        patch.setitem(reference_ops.OPS, Linear, rounding_linear)
        return reference_logits(model, chunks)


def poison(runner):
    """Fill every page and every buffer between ops with bytes that are NaN however they are read."""
    placed = runner._placed
    runner._kv.arena.bytes[:] = 255
    for address, size in zip(placed.pieces, placed.plan.sizes, strict=True):
        placed.arena.view(address, (size,), np.uint8)[:] = 255


def distance(a, b):
    """Relative L2."""
    return float(np.linalg.norm(a.astype(np.float64) - b) / np.linalg.norm(b))
