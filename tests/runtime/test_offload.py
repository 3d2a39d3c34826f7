"""Loading with layers on a GPU: what goes, what stays, what people are told, and what happens when memory is short.

The device is a number of free bytes, the reference computes its share.
"""

from __future__ import annotations

import logging
import subprocess
import sys

import numpy as np
import pytest

import halfbyte
from halfbyte import load
from halfbyte.errors import ConfigError, ResourceError, UnsupportedError
from halfbyte.runtime import backends, fits, offload
from tests.model.tiny import make_tiny_gguf
from tests.runtime.fake_gpu import put_in_place

PROMPT = list(range(5, 45))
OPTIONS = {"context": 128, "threads": 1, "max_num_seqs": 2}


@pytest.fixture
def device(monkeypatch):
    return put_in_place(monkeypatch)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return make_tiny_gguf(tmp_path_factory.mktemp("m") / "m.gguf", "llama", weights="f32")


@pytest.fixture(scope="module")
def mixture(tmp_path_factory):
    return make_tiny_gguf(tmp_path_factory.mktemp("m") / "moe.gguf", "qwen3moe", weights="f32")


def answers(path, **options):
    with load(path, **OPTIONS, **options) as llm:
        return llm.info(), llm.logits(PROMPT), llm.generate(PROMPT, max_tokens=12, temperature=0).ids


@pytest.mark.parametrize(
    ("options", "layers", "backend"),
    [
        ({"gpu_layers": 1}, "1 of 3", "cuda+cpu"),
        ({"gpu_layers": 2, "kv_on_cpu": True}, "2 of 3", "cuda+cpu"),
        ({"gpu_layers": "all"}, "3 of 3", "cuda"),
        ({"gpu_layers": 1000}, "3 of 3", "cuda"),
        ({"gpu_layers": "auto"}, "3 of 3", "cuda"),
        ({"gpu_layers": np.int64(2), "kv": "q8_0"}, "2 of 3", "cuda+cpu"),
    ],
    ids=str,
)
def test_the_answer_is_that_of_the_cpu(path, device, options, layers, backend):
    _, logits, ids = answers(path, kv=options.get("kv", "f16"))
    info, mine, chosen = answers(path, **options)
    assert (info["gpu_layers"], info["backend"], info["gpu"]) == (layers, backend, "a card")
    assert np.linalg.norm(mine - logits) / np.linalg.norm(logits) < 2e-3
    assert chosen == ids
    assert device.closed == 1


def test_experts_stay_on_the_cpu(mixture, device):
    _, logits, _ = answers(mixture)
    info, mine, _ = answers(mixture, gpu_layers="all", experts_on_cpu=True)
    assert info["backend"] == "cuda+cpu"
    assert info["packed_bytes"] > info["gpu_packed_bytes"]
    assert np.linalg.norm(mine - logits) / np.linalg.norm(logits) < 2e-3


def test_auto_takes_what_fits(path, device, caplog):
    caplog.set_level(logging.INFO, "halfbyte.load")
    few = {"max_num_batched_tokens": 64}
    device.free = offload_of(path, "all", **few).split.needed - 1
    info, _, _ = answers(path, gpu_layers="auto", **few)
    assert info["gpu_layers"] == "2 of 3"
    assert "a card: the last 2 of 3 layers on the GPU" in caplog.text
    device.free = 10
    info, _, _ = answers(path, gpu_layers="auto")
    assert info["backend"] == "cpu"
    assert "no layer fits" in caplog.text
    assert device.closed == 2


def offload_of(path, wish, **options):
    from halfbyte.formats import open_gguf
    from halfbyte.model import bind
    from halfbyte.runtime.config import LoadConfig

    bound = bind(open_gguf(path))
    job = backends.Job(bound.program, bound.weights, LoadConfig(gpu_layers=wish, **OPTIONS, **options), None)
    device = offload.open_device()
    return offload.offloaded(job, device, device.free_bytes())


@pytest.mark.parametrize("room", [0, 1, 2])
def test_a_card_that_is_fuller_than_thought_gets_fewer_layers_with_a_warning(room, path, device, caplog):
    device.room = room
    info, logits, _ = answers(path, gpu_layers="auto")
    assert np.isfinite(logits).all()
    assert device.built == [3, 2, 1][: 3 - room + (room > 0)]
    assert device.closed == 1
    assert info.get("gpu_layers", "0 of 3") == f"{room} of 3"
    warnings = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 3 - room
    assert "905 more are needed: 2 layers go to the GPU instead of 3" in warnings[0]


def test_much_too_full_skips_several_layers_at_once(path, device):
    sized = offload_of(path, "auto")
    assert sized._with_fewer(sized.split.needed - 1, "full").split.layers == 0
    assert sized._with_fewer(0, "full").split.layers == 2


def test_a_number_that_does_not_fit_is_an_error_with_bytes(path, device):
    device.room = 1
    with pytest.raises(ResourceError, match="905 more are needed") as found:
        load(path, **OPTIONS, gpu_layers=2)
    assert (found.value.needed, found.value.free) == (905, 5)
    assert device.closed == 1
    device.free = 1000
    with pytest.raises(ResourceError, match=r"2 layers need .* GB on the GPU") as found:
        load(path, **OPTIONS, gpu_layers=2)
    assert found.value.needed > found.value.free == 1000
    assert device.closed == 2


@pytest.mark.parametrize("kind", [ConfigError, ResourceError, UnsupportedError])
def test_without_a_gpu_auto_says_so_and_a_number_is_an_error(kind, path, monkeypatch, caplog):
    def nothing():
        raise kind("no NVIDIA driver on this machine")

    monkeypatch.setattr(offload, "open_device", nothing)
    caplog.set_level(logging.INFO, "halfbyte.load")
    with load(path, **OPTIONS, gpu_layers="auto") as llm:
        assert llm.info()["backend"] == "cpu"
    (said,) = [record for record in caplog.records if "no NVIDIA driver" in record.message]
    assert said.levelno == logging.INFO
    for wish in (1, "all"):
        with pytest.raises(kind, match="no NVIDIA driver"):
            load(path, **OPTIONS, gpu_layers=wish)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gpu_layers": -1}, "gpu_layers must be a number of layers of at least 0, 'auto' or 'all', not -1"),
        ({"gpu_layers": True}, "gpu_layers must be"),
        ({"gpu_layers": 1.5}, "gpu_layers must be"),
        ({"gpu_layers": "most"}, "gpu_layers must be"),
        ({"gpu_layers": 2, "backend": "reference"}, "takes layers from backend='cpu'"),
        ({"experts_on_cpu": True}, "experts_on_cpu is about layers on a GPU: say how many with gpu_layers"),
        ({"gpu_layers": 2, "kv_on_cpu": 1}, "kv_on_cpu must be True or False"),
    ],
    ids=str,
)
def test_mistakes_are_named(path, options, message):
    with pytest.raises(ConfigError) as found:
        load(path, **options)
    assert message in str(found.value)
    assert found.value.key in options


def test_steps_are_longer_only_where_a_gpu_computes_everything(path, device):
    for options, tokens, stretch in (
        ({"gpu_layers": "all"}, 2048, 16.0),
        ({"gpu_layers": 2}, 512, 2.5),
        ({"gpu_layers": "all", "kv_on_cpu": True}, 512, 2.5),
        ({"gpu_layers": "all", "max_num_batched_tokens": 64, "prompt_stretch": 3}, 64, 3.0),
        ({}, 512, 2.5),
    ):
        with load(path, **OPTIONS, **options) as llm:
            limits = llm._engine.limits
            assert (limits.max_num_batched_tokens, limits.prompt_stretch) == (tokens, stretch)


def test_a_share_of_memory_for_keys_and_values_is_one_of_the_gpus(path, device, monkeypatch):
    device.free = 8_000_000
    job = offload_of(path, "auto", kv_memory=0.25).job
    assert job.n_pages == 2_000_000 // job.page_bytes
    assert offload_of(path, "auto", kv_memory=2_000_000).job.n_pages == job.n_pages
    with pytest.raises(ConfigError, match="less than a page"):
        load(path, **OPTIONS, gpu_layers="auto", kv_memory=1e-6)
    assert device.closed == 1


def test_memory_of_this_machine_is_asked_only_for_what_stays(path, device, monkeypatch):
    monkeypatch.setattr(fits, "free_memory", lambda: 100)
    with pytest.raises(ResourceError, match="the model needs"):
        load(path, **OPTIONS)
    with load(path, **OPTIONS, gpu_layers="all") as llm:
        assert llm.info()["backend"] == "cuda"
    with pytest.raises(ResourceError, match="the model needs"):
        load(path, **OPTIONS, gpu_layers=1)
    assert device.closed == 2
    one, two = offload_of(path, 1).job, offload_of(path, 2).job
    assert one.host_weights > two.host_weights > 0
    assert one.host_kv_bytes == 2 * two.host_kv_bytes == 2 * one.n_pages * one.page_bytes // 3
    assert one.n_pages == two.n_pages == 8


def test_nothing_of_cuda_is_imported_by_those_who_ask_for_nothing():
    code = (
        "import sys, halfbyte, halfbyte.runtime.load, halfbyte.cli.model\n"
        "print(*[name for name in sys.modules if 'cupy' in name or 'gpu_offload' in name])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout.strip(), run.stderr) == (0, "", "")
    assert halfbyte.__version__
