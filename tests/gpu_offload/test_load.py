"""Whole models with layers on an emulated GPU: what people get who say `gpu_layers`."""

from __future__ import annotations

import logging
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from halfbyte import load, load_embedder
from halfbyte.errors import ResourceError
from halfbyte.gpu_offload.device_bytes import device_bytes
from halfbyte.runtime import offload
from tests.cpu_kernels.kernel_sets import ready
from tests.gpu_offload.emulated.compiler import missing
from tests.gpu_offload.emulated.device import EmulatedDevice
from tests.model.adapters import make_adapter
from tests.model.tiny import make_tiny_gguf

pytestmark = pytest.mark.skipif(bool(missing()), reason=str(missing()))

OPTIONS = {"context": 96, "threads": 1, "max_num_seqs": 2, "max_num_batched_tokens": 40}
SHORT, LONG = list(range(5, 14)), list(range(7, 60))
CLOSE = 3e-3
"""Relative L2 of logits of the CPU, which rounds activations otherwise. Measured: 9e-4 at most."""


@pytest.fixture
def devices(monkeypatch):
    """Every device that was `opened`, and how large the next one will be."""
    found = SimpleNamespace(opened=[], settings={"budget": 1 << 30})

    def open_device():
        found.opened.append(EmulatedDevice(**found.settings))
        return found.opened[-1]

    ready()
    monkeypatch.setattr(offload, "open_device", open_device)
    monkeypatch.setattr(offload, "RESERVE", 0)
    return found


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {
        "llama": make_tiny_gguf(folder / "llama.gguf", "llama", weights="q8_0"),
        "qwen3moe": make_tiny_gguf(folder / "moe.gguf", "qwen3moe", weights="q8_0"),
        "bert": make_tiny_gguf(folder / "bert.gguf", "bert", weights="q8_0"),
    }


def answers(path, **options):
    with load(path, **OPTIONS, **options) as llm:
        logits = [llm.logits(ids) for ids in (SHORT, LONG)]
        return llm.info(), np.concatenate(logits), llm.generate(LONG, max_tokens=6, temperature=0).ids


def far(a, b):
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


@pytest.mark.parametrize(
    ("arch", "options"),
    [
        ("llama", {"gpu_layers": 1}),
        ("llama", {"gpu_layers": "all"}),
        ("llama", {"gpu_layers": 2, "kv_on_cpu": True}),
        ("qwen3moe", {"gpu_layers": "all"}),
        ("qwen3moe", {"gpu_layers": "auto", "experts_on_cpu": True}),
    ],
    ids=str,
)
def test_it_answers_as_the_cpu_does(arch, options, paths, devices):
    plain, expected, ids = answers(paths[arch])
    info, logits, chosen = answers(paths[arch], **options)
    assert far(logits, expected) < CLOSE
    assert chosen == ids
    assert info["gpu"] == "emulated"
    assert info["packed_bytes"] == pytest.approx(plain["packed_bytes"], rel=0.15)  # what a token reads of the weights
    assert info["backend"] == ("cuda" if options == {"gpu_layers": "all"} else "cuda+cpu")


def test_answers_side_by_side_are_those_of_each_alone(paths, devices):
    with load(paths["llama"], **OPTIONS, gpu_layers=2, speculation="off") as llm:
        alone = [llm.generate(ids, max_tokens=5, temperature=0).ids for ids in (SHORT, LONG)]
        together = [one.ids for one in llm.generate([SHORT, LONG], max_tokens=5, temperature=0)]
        assert together == alone
        before = llm.logits(SHORT)
        assert np.array_equal(llm.logits(SHORT), before)


@pytest.mark.parametrize("vocab", [320, 300])
def test_logits_are_not_copied_where_rows_lie_side_by_side(vocab, devices, tmp_path):
    path = make_tiny_gguf(tmp_path / "m.gguf", "llama", weights="q8_0", n_vocab=vocab)
    with load(path, **OPTIONS) as llm:
        expected = llm.logits(LONG)
    with load(path, **OPTIONS, gpu_layers=1, speculation="off") as llm:
        loop = llm._engine._loop
        made = loop.executable.logits_memory(1, vocab)
        assert np.shares_memory(made, loop._logits) == (vocab == 320)
        both = [one.ids for one in llm.generate([SHORT, LONG], max_tokens=5, temperature=0)]
        alone = [llm.generate(ids, max_tokens=5, temperature=0).ids for ids in (SHORT, LONG)]
        assert both == alone
        assert far(llm.logits(LONG), expected) < CLOSE
    assert loop._logits.size == 0


@pytest.mark.parametrize("layers", [1, "all"])
def test_vectors_of_texts(layers, paths, devices):
    texts = ["the thing", "another one and then the other: " * 6]
    with (
        load_embedder(paths["bert"], threads=1) as plain,
        load_embedder(paths["bert"], threads=1, gpu_layers=layers) as mine,
    ):
        assert far(mine.embed(texts), plain.embed(texts)) < 2 * CLOSE


def test_adapters_work_on_both_sides(paths, devices, tmp_path):
    shapes = {"blk.0.attn_q.weight": (64, 64), "blk.2.ffn_down.weight": (64, 128)}
    path = make_adapter(tmp_path / "a.gguf", shapes)
    both = {"adapters": [str(path)]}
    with load(paths["llama"], **OPTIONS, **both) as llm:
        expected, plain = llm.logits(SHORT), llm.logits(SHORT, adapters=[])
    with load(paths["llama"], **OPTIONS, **both, gpu_layers=1) as llm:
        mine, without = llm.logits(SHORT), llm.logits(SHORT, adapters=[])
    assert far(expected, plain) > 10 * CLOSE
    assert far(mine, expected) < CLOSE
    assert far(without, plain) < CLOSE


def test_a_side_may_have_nothing_of_the_last_adapter(paths, devices, tmp_path):
    first = make_adapter(tmp_path / "a.gguf", {"blk.0.attn_q.weight": (64, 64)})
    last = make_adapter(tmp_path / "b.gguf", {"blk.2.ffn_down.weight": (64, 128)})
    for names in ([first, last], [last, first]):
        chosen = {"adapters": [str(name) for name in names]}
        with load(paths["llama"], **OPTIONS, **chosen) as llm:
            expected = llm.logits(SHORT)
        with load(paths["llama"], **OPTIONS, **chosen, gpu_layers=1) as llm:
            assert far(llm.logits(SHORT), expected) < CLOSE


@pytest.mark.parametrize("layers", [2, "all"])
def test_guessed_tokens_change_no_answer(layers, paths, devices):
    answers = []
    for speculation in ("off", "ngram"):
        with load(paths["llama"], **OPTIONS, gpu_layers=layers, speculation=speculation) as llm:
            answers.append([llm.generate(SHORT, max_tokens=20, temperature=0).ids for _ in range(3)])
    assert answers[0] == answers[1]


def test_pages_of_both_sides_go_to_disk_and_come_back(paths, devices, tmp_path):
    options = OPTIONS | {"gpu_layers": 2, "disk_cache": tmp_path, "speculation": "off"}
    with load(paths["llama"], **options) as llm:
        first = llm.generate(LONG, max_tokens=5, temperature=0)
    with load(paths["llama"], **options) as llm:
        again = llm.generate(LONG, max_tokens=5, temperature=0)
    assert again.timings.cached_tokens == 48
    assert again.ids == first.ids


def test_a_lost_device_ends_requests_and_the_model_says_so(paths, devices):
    with load(paths["llama"], **OPTIONS, gpu_layers=2) as llm:
        llm.generate(SHORT, max_tokens=3)
        devices.opened[0].fail_after(5)
        for _ in range(2):
            with pytest.raises(ResourceError, match="the GPU was lost; load the model again"):
                llm.generate(SHORT, max_tokens=30)
        assert llm.info()["running"] == 0
    with load(paths["llama"], **OPTIONS, gpu_layers=2) as llm:
        assert llm.generate(SHORT, max_tokens=3).ids


def test_memory_is_given_back_whoever_keeps_the_model_or_the_error(paths, devices, monkeypatch):
    def used():
        return devices.settings["budget"] - devices.opened[-1].free_bytes()

    llm = load(paths["llama"], **OPTIONS, gpu_layers=2)
    llm.generate(SHORT, max_tokens=2)
    assert used()
    llm.close()
    assert used() == 0
    assert llm.info()["gpu_layers"] == "2 of 3"
    monkeypatch.setattr(
        offload, "device_bytes", lambda *given, **sizes: replace(device_bytes(*given, **sizes), buffers=0)
    )
    devices.settings["budget"] = 250_000
    with pytest.raises(ResourceError) as found:
        load(paths["llama"], **OPTIONS, gpu_layers="all")
    assert found.value.needed
    assert len(devices.opened) == 2
    assert used() == 0


def test_a_small_card_gets_what_fits(paths, devices):
    devices.settings["budget"] = 100_000
    with pytest.raises(ResourceError, match=r"3 layers need .* on the GPU") as found:
        load(paths["llama"], **OPTIONS, gpu_layers="all")
    assert found.value.needed > found.value.free
    info, _, _ = answers(paths["llama"], gpu_layers="auto")
    assert info["backend"] == "cpu"


@pytest.mark.parametrize("options", [{"gpu_layers": "all"}, {"gpu_layers": 2, "kv_on_cpu": True}], ids=str)
def test_what_is_taken_is_about_what_was_expected(options, paths, devices, monkeypatch):
    made, cut = [], offload.offloaded
    monkeypatch.setattr(offload, "offloaded", lambda *given: made.append(cut(*given)) or made[-1])
    with load(paths["llama"], **OPTIONS, **options) as llm:
        llm.logits(LONG)
        taken = devices.settings["budget"] - devices.opened[0].free_bytes()
        assert 0.5 * made[0].split.needed < taken < 1.05 * made[0].split.needed + 40_000


def test_a_card_with_less_room_than_was_guessed_gets_fewer_layers(paths, devices, caplog, monkeypatch):
    monkeypatch.setattr(
        offload, "device_bytes", lambda *given, **sizes: replace(device_bytes(*given, **sizes), buffers=0)
    )
    _, expected, _ = answers(paths["llama"])
    with load(paths["llama"], **OPTIONS, gpu_layers="all"):
        used = [devices.settings["budget"] - device.free_bytes() for device in devices.opened]
    devices.settings["budget"] = used[0] - 2000
    info, logits, _ = answers(paths["llama"], gpu_layers="auto")
    assert info["gpu_layers"] == "2 of 3"
    assert far(logits, expected) < CLOSE
    (warning,) = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert warning.startswith("the GPU has ")
    assert warning.endswith("needed: 2 layers go to the GPU instead of 3")
    with pytest.raises(ResourceError, match="needed") as found:
        load(paths["llama"], **OPTIONS, gpu_layers="all")
    assert found.value.needed > found.value.free
