"""A share on an emulated GPU and one on the CPU, wherever a program is cut."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.cpu_kernels.share import build_share
from halfbyte.formats import open_gguf
from halfbyte.gpu_offload import executable
from halfbyte.model import bind
from halfbyte.model.pieces import cut
from halfbyte.model.program import Attention, KvWrite
from halfbyte.model.taps import with_taps
from halfbyte.runtime.hybrid import HybridExecutable
from tests.cpu_kernels.kernel_sets import DETECTED, ready
from tests.cpu_kernels.programs import IDS, N_PAGES, VOCAB, distance
from tests.model.batches import run_all, run_side_by_side, step
from tests.model.shares import random_places, reference_of
from tests.model.tiny import make_tiny_gguf

CLOSE = 3e-3
"""Relative L2 of logits of the reference, which rounds nothing. Measured: 1.1e-3 at most."""


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    paths = [make_tiny_gguf(folder / f"{arch}.gguf", arch, weights="q8_0", seed=1) for arch in ("llama", "qwen3moe")]
    return [bind(open_gguf(path)) for path in paths]


@pytest.fixture
def hybrid(device):
    """Of `model` with its `program` cut at `places`; it leaves the device open."""
    ready()
    made = []

    def make(model, places, program=None):
        pieces = cut(program or model.program, places)
        own, other = pieces.shares["cpu"], pieces.shares["gpu"]
        sizes = {"n_pages": N_PAGES, "max_tokens": len(IDS)}
        cpu = build_share(own.program, own.stages, model.weights, **sizes, isa=DETECTED, threads=1)
        weights = {name: model.weights[name] for name in other.program.weight_names()}
        sizes |= {"max_seqs": 3, "context": 16 * N_PAGES}
        gpu = executable.build(other.program, other.stages, weights, device=device, **sizes)
        gpu.close = lambda: None
        made.append(HybridExecutable(pieces, {"cpu": cpu, "gpu": gpu}, cpu))
        return made[-1]

    yield make
    for runner in made:
        runner.close()


def whole(model, program=None):
    """The reference, of all of it."""
    pieces = cut(program or model.program, ["cpu"] * len((program or model.program).ops))
    return reference_of(pieces.shares["cpu"], model.weights, N_PAGES)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("number", [0, 1], ids=["llama", "qwen3moe"])
def test_sequences_side_by_side(number, seed, models, hybrid):
    """In some steps one has many new tokens and others few, which cross in groups."""
    model, prompts, chunks = models[number], [IDS[:40], IDS[5:30]], (30, 4)
    runner = hybrid(model, random_places(model.program, np.random.default_rng(seed), 3 + 4 * seed))
    found = run_side_by_side(runner, prompts, VOCAB, chunks)
    expected = run_side_by_side(whole(model), prompts, VOCAB, chunks)
    assert all(distance(mine, one) < CLOSE for mine, one in zip(found, expected, strict=True))


def test_borders_in_every_layer_take_the_room_of_one(models, hybrid):
    model = models[0]
    places = ["cpu" if isinstance(op, KvWrite | Attention) else "gpu" for op in model.program.ops]
    gpu = hybrid(model, places)._sides["gpu"]
    rooms = {border._room for name, border in gpu._borders.items() if name.startswith("blk.")}
    one = sum(border.n_bytes for name, border in gpu._borders.items() if name.startswith("blk.0."))
    assert sum(room.n_bytes for room in rooms) == one


def test_a_value_that_crosses_and_is_tapped_is_there_in_the_end(models, hybrid):
    model = models[0]
    program = with_taps(model.program, ["blk.0.attn_v", "blk.0.attn", "blk.1.ffn_gated"])
    places = ["cpu" if isinstance(op, KvWrite | Attention) else "gpu" for op in program.ops]
    runner, plain = hybrid(model, places, program), whole(model, program)
    for one in (runner, plain):
        run_all(one, [step([(IDS[:12], 0, [3])], 16)], VOCAB)
    assert all(distance(runner.tapped(name), plain.tapped(name)) < CLOSE for name in plain.program.taps())
