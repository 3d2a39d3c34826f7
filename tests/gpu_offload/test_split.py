"""How many layers go to a GPU, and which ops: numbers alone, no device."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from halfbyte.errors import ResourceError
from halfbyte.formats import open_gguf
from halfbyte.gpu_offload.device_bytes import DeviceBytes, device_bytes
from halfbyte.gpu_offload.split import Kept, regions_of, split
from halfbyte.model import bind
from halfbyte.model.adapt import adapt
from halfbyte.model.adapter import read_adapter
from halfbyte.model.archs import ARCHS
from halfbyte.model.kv_types import KvTypes
from halfbyte.model.pieces import cut
from halfbyte.model.program import Attention, Combine, Dispatch, Embed, KvWrite, Linear, MoeRoute, ShortConv, TakeRows
from halfbyte.model.reference import ReferenceExecutable
from tests.model.adapters import make_adapter
from tests.model.batches import run_all, step
from tests.model.shares import on_references
from tests.model.tiny import make_tiny_gguf

LAYERS = 3
CARD = SimpleNamespace(multiprocessors=4, shared_bytes=99 << 10)
STEP = {"n_pages": 2, "context": 32, "max_tokens": 8, "max_seqs": 2}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {arch: bind(open_gguf(make_tiny_gguf(folder / f"{arch}.gguf", arch))) for arch in ARCHS}


def even(program, *, layer=100, head=1000, embedding=500, kv=10, buffers=50):
    """Every matrix of a layer has `layer` bytes in all, whatever it consists of."""
    names = program.weight_names()
    first = {n: next(name for name in names if f"blk.{n}." in name) for n in range(LAYERS)}
    weights = dict.fromkeys(names, 0) | dict.fromkeys(first.values(), layer)
    weights |= {"output.weight": head, "token_embd.weight": embedding}
    return DeviceBytes(weights, [kv] * LAYERS, buffers)


def of(model, wish, free=10**6, reserve=0, kept=None, **sizes):
    program = model.program
    return split(program, wish, sizes=even(program, **sizes), free=free, reserve=reserve, kept=kept)


@pytest.mark.parametrize(
    ("wish", "layers", "needed"),
    [
        (0, 0, 0),
        (1, 1, 1000 + 110 + 50),
        (2, 2, 1000 + 220 + 50),
        (3, 3, 1000 + 330 + 50 + 500),
        (99, 3, 1880),
        ("all", 3, 1880),
        ("auto", 3, 1880),
    ],
)
def test_what_a_wish_comes_to(models, wish, layers, needed):
    found = of(models["llama"], wish)
    assert (found.layers, found.of, found.needed) == (layers, LAYERS, needed)
    assert ("gpu" in found.places) == bool(layers)


@pytest.mark.parametrize(
    ("free", "layers"), [(0, 0), (1159, 0), (1160, 1), (1269, 1), (1270, 2), (1879, 2), (1880, 3), (10**9, 3)]
)
def test_auto_takes_as_many_layers_as_fit(models, free, layers):
    assert of(models["llama"], "auto", free).layers == layers
    assert of(models["llama"], "auto", free + 77, reserve=77).layers == layers


def test_the_last_layers_go_with_the_head_and_the_embedding_with_all(models):
    program = models["llama"].program
    places = of(models["llama"], 1).places
    by_weight = {op.weight: place for op, place in zip(program.ops, places, strict=True) if isinstance(op, Linear)}
    assert {name for name, place in by_weight.items() if place == "gpu"} == {
        name for name in by_weight if name.startswith("blk.2.") or name == "output.weight"
    }
    taken = [place for op, place in zip(program.ops, places, strict=True) if isinstance(op, TakeRows)]
    assert set(taken) == {"gpu"}
    assert places[0] == "cpu"
    assert isinstance(program.ops[0], Embed)
    assert set(of(models["llama"], "all").places) == {"gpu"}


@pytest.mark.parametrize("arch", [arch for arch in ARCHS if "bert" not in arch])
def test_half_a_model_crosses_once_with_the_hidden_state_alone(arch, models):
    model = models[arch]
    places = split(model.program, 1, sizes=even(model.program), free=10**6, reserve=0).places
    pieces = cut(model.program, places)
    assert [place for place, _ in pieces.order] == ["cpu", "gpu"]
    (stage,) = pieces.shares["gpu"].stages
    assert len(stage.receives) <= 1 + (arch == "gpt-oss")
    assert sum(model.program.widths[name] for name in stage.receives) <= 2 * model.spec.n_embd


@pytest.mark.parametrize("arch", ARCHS)
def test_regions_never_go_back_and_every_layer_has_one(arch, models):
    program = models[arch].program
    regions = regions_of(program)
    assert regions == sorted(regions)
    assert regions[0] == 0
    assert set(range(1, LAYERS + 1)) <= set(regions)
    for op, region in zip(program.ops, regions, strict=True):
        named = [name for name in (*op.writes(), *op.weights()) if name.startswith("blk.")]
        assert all(name.startswith(f"blk.{region - 1}.") for name in named)


def test_keys_and_values_stay_where_they_shall(models):
    for arch in ("llama", "lfm2"):
        model = models[arch]
        found = of(model, "all", kept=Kept(kv=True))
        kinds = {type(op) for op, place in zip(model.program.ops, found.places, strict=True) if place == "cpu"}
        assert kinds <= {KvWrite, Attention, ShortConv}
        assert found.needed == of(model, "all").needed - LAYERS * 10
        assert not cut(model.program, found.places).shares["gpu"].program.kv_layers


def test_experts_stay_where_they_shall(models):
    program = models["qwen3moe"].program
    found = of(models["qwen3moe"], 2, kept=Kept(experts=True))
    stays = [op for op, place in zip(program.ops, found.places, strict=True) if place == "cpu"]
    assert sum(isinstance(op, (MoeRoute, Dispatch, Combine)) for op in stays) == 3 * LAYERS
    gpu = cut(program, found.places).shares["gpu"].program
    assert not any("exps" in name for name in gpu.weight_names())
    assert sum("ffn_gate_inp" in name for name in gpu.weight_names()) == 2
    assert of(models["llama"], 2, kept=Kept(experts=True)) == of(models["llama"], 2)


def test_experts_on_the_cpu_make_room_for_layers(models):
    model = models["qwen3moe"]
    sizes = device_bytes(model.program, model.weights, CARD, kv=KvTypes(), **STEP)
    whole = split(model.program, "all", sizes=sizes, free=10**9, reserve=0)
    tight = whole.needed - 1
    assert split(model.program, "auto", sizes=sizes, free=tight, reserve=0).layers == LAYERS - 1
    assert split(model.program, "auto", sizes=sizes, free=tight, reserve=0, kept=Kept(experts=True)).layers == LAYERS


def test_more_than_fits_is_refused_with_what_would(models):
    with pytest.raises(ResourceError, match=r"3 layers need .* GB on the GPU and .* are free: 1 fit") as found:
        of(models["llama"], "all", 1269)
    assert (found.value.needed, found.value.free) == (1880, 1269)
    with pytest.raises(ResourceError, match="none fits"):
        of(models["llama"], 1, 100)
    assert of(models["llama"], 3, 1880, reserve=1000).layers == LAYERS  # who says a number needs no reserve


def test_people_are_told(models):
    assert of(models["llama"], "auto", 10).about.startswith("no layer fits")
    assert of(models["llama"], 2, 10**10).about == "the last 2 of 3 layers on the GPU, 0.00 GB of 10.00 GB free there"
    assert of(models["llama"], "all").about.startswith("all 3 layers")


def test_an_adapter_goes_with_its_layer(tmp_path, models):
    path = make_adapter(tmp_path / "a.gguf", {"blk.2.attn_q.weight": (64, 64), "blk.0.ffn_down.weight": (64, 128)})
    with open_gguf(path) as file:
        model = adapt(models["llama"], [read_adapter(file, "llama", models["llama"].program)])
    places = of(model, 1).places
    for op, place in zip(model.program.ops, places, strict=True):
        for name in op.weights():
            if name.startswith("adapter"):
                assert place == ("gpu" if "blk.2." in name else "cpu")


def test_sizes_on_the_device(tmp_path):
    """By hand: 64 columns of q8_0 are 1 step of 16 rows, 16 * 64 codes and 2 * 16 halves of scales."""
    model = bind(open_gguf(make_tiny_gguf(tmp_path / "m.gguf", "llama", weights="q8_0", n_vocab=300)))
    sizes = device_bytes(model.program, model.weights, CARD, kv=KvTypes("f16", "q8_0"), **STEP)
    step_bytes = 16 * 64 + 2 * 2 * 16
    assert sizes.weights["blk.0.attn_q.weight"] == 4 * step_bytes
    assert sizes.weights["output.weight"] == -(-300 // 16) * step_bytes
    assert sizes.weights["blk.0.attn_norm.weight"] == 4 * 64
    assert list(sizes.kv) == [2 * 16 * 2 * (2 * 16 + 16 + 2)] * LAYERS
    logits = 4 * 8 * 320
    assert 2 * logits < sizes.buffers < 20 * logits
    larger = device_bytes(model.program, model.weights, CARD, kv=KvTypes(), **STEP | {"max_tokens": 80})
    assert 3 * sizes.buffers < larger.buffers


@pytest.mark.parametrize("arch", ["llama", "gemma2", "qwen3moe", "gpt-oss", "lfm2"])
@pytest.mark.parametrize("kept", [Kept(), Kept(kv=True), Kept(experts=True), Kept(True, True)], ids=str)
def test_every_split_computes_the_model(arch, kept, models):
    model, vocab = models[arch], 300
    batch = step([(np.arange(20), 0, [0, 1])], 16)
    expected = run_all(ReferenceExecutable(model.program, model.weights, n_pages=2), [batch], vocab)
    for layers in (1, 2, LAYERS):
        places = split(model.program, layers, sizes=even(model.program), free=10**6, reserve=0, kept=kept).places
        assert np.array_equal(
            run_all(on_references(cut(model.program, places), model.weights, 2), [batch], vocab), expected
        )
