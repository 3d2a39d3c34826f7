"""What a program is said to take before it is built, and what it takes."""

from __future__ import annotations

import pytest

from halfbyte.cpu_kernels.executable import build
from halfbyte.cpu_kernels.footprint import footprint
from halfbyte.formats import open_gguf
from halfbyte.model import bind
from halfbyte.model.kv_types import kv_types
from tests.cpu_kernels.kernel_sets import DETECTED, ready
from tests.model.tiny import make_tiny_gguf
from tests.model.tiny_traits import TRAITS


@pytest.mark.parametrize(("weights", "kv", "max_tokens", "threads"), [("q4_k", "f16", 40, 1), ("q8_0", "q8_0", 7, 2)])
@pytest.mark.parametrize("arch", TRAITS)
def test_it_takes_what_was_said(tmp_path, arch, weights, kv, max_tokens, threads):
    ready()
    made = bind(open_gguf(make_tiny_gguf(tmp_path / "m.gguf", arch, weights=weights)))
    types = kv_types(kv if made.program.kv_layers else "f16")
    said = footprint(made.program, made.weights, max_tokens=max_tokens, threads=threads, kv=types)
    built = build(made.program, made.weights, n_pages=3, max_tokens=max_tokens, threads=threads, isa=DETECTED, kv=types)
    assert said.weights == built._weight_arena.size
    assert said.page == built.page_bytes
    assert said.buffers == built._placed.arena.size + built._peaks.nbytes
    assert set(said.kernels) == set(built._kernels.addresses)
    assert said.read <= said.weights
    built.close()
