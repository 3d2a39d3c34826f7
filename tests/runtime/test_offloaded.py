"""A model with layers on a GPU, from when it is loaded: what is kept of it, what else runs beside it, and its end."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte import load
from halfbyte.errors import ConfigError, ResourceError
from halfbyte.runtime.bare import BareModel
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


def test_cuts_do_not_share_what_they_keep(path, device, tmp_path):
    marks = set()
    for options in ({}, {"gpu_layers": 1}, {"gpu_layers": 2}, {"gpu_layers": 2, "kv_on_cpu": True}):
        with load(path, **OPTIONS, **options) as llm:
            marks.add(llm._engine.origin.fingerprint)
    assert len(marks) == 4
    with load(path, **OPTIONS, gpu_layers=2) as llm:
        assert llm._engine.origin.fingerprint in marks


def test_a_disk_cache_keeps_pages_of_both(path, device, tmp_path):
    options = OPTIONS | {"gpu_layers": 2, "disk_cache": tmp_path / "cache"}
    with load(path, **options) as llm:
        first = llm.generate(PROMPT, max_tokens=8, temperature=0)
    with load(path, **options) as llm:
        again = llm.generate(PROMPT, max_tokens=8, temperature=0)
        assert again.timings.cached_tokens == 32
        assert again.ids == first.ids


def test_a_session_comes_back_where_the_cut_is_the_same(path, device, tmp_path):
    with load(path, **OPTIONS, gpu_layers=2) as llm:
        first = llm.generate(PROMPT, max_tokens=8, temperature=0)
        assert llm.save_session(tmp_path / "session", PROMPT) == 32
    with load(path, **OPTIONS, gpu_layers=2) as llm:
        assert llm.load_session(tmp_path / "session") == 32
        again = llm.generate(PROMPT, max_tokens=8, temperature=0)
        assert (again.timings.cached_tokens, again.ids) == (32, first.ids)
    with (
        load(path, **OPTIONS, gpu_layers=1) as llm,
        pytest.raises(ConfigError, match=r"isa .*2 of 3 layers.* where now it is isa .*1 of 3 layers"),
    ):
        llm.load_session(tmp_path / "session")


def test_a_lost_card_ends_requests_and_not_the_process(path, device, tmp_path):
    with load(path, **OPTIONS, gpu_layers=2, disk_cache=tmp_path) as llm:
        llm.generate(PROMPT, max_tokens=4)
        device.lost = True
        for _ in range(3):
            with pytest.raises(ResourceError, match=r"lost .* load the model again"):
                llm.generate(PROMPT, max_tokens=4)
        assert llm.info()["running"] == 0
        device.lost = False
        assert llm.generate(PROMPT, max_tokens=4).ids
    assert device.closed == 1


def test_a_draft_model_stays_on_the_cpu(path, device):
    with load(path, **OPTIONS, gpu_layers=1, draft_model=path) as llm:
        plain = llm.generate(PROMPT, max_tokens=12, temperature=0)
    assert device.built == [1]
    with load(path, **OPTIONS, gpu_layers=1) as llm:
        assert llm.generate(PROMPT, max_tokens=12, temperature=0).ids == plain.ids


def test_a_check_on_loading_is_of_what_the_gpu_answers(path, device):
    for options in ({}, {"kv": "q8_0"}):
        with load(path, **OPTIONS | {"context": 256}, gpu_layers=2, check=True, **options) as llm:
            assert llm.info()["gpu_layers"] == "2 of 3"
    assert device.built == [2, 2, 2]


def test_a_bare_model_takes_layers_too(path, device):
    ids = np.array(PROMPT, np.int32)
    rows = np.arange(len(ids), dtype=np.int32)
    with BareModel(path, window=64, threads=1) as plain, BareModel(path, window=64, threads=1, gpu_layers=2) as cut:
        expected, mine = plain.logits(ids, rows), cut.logits(ids, rows)
    assert np.linalg.norm(mine - expected) / np.linalg.norm(expected) < 2e-3
    assert (device.built, device.closed) == ([2], 1)
