"""Adapters as a request chooses them: what it gets, what it shares with others, and what it is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from halfbyte import load
from halfbyte.errors import ConfigError, FormatError, RequestError, UnsupportedError
from tests.model.adapters import make_adapter
from tests.model.tiny import tiny_model

SHAPES = {"blk.0.attn_q.weight": (64, 64), "blk.1.attn_v.weight": (32, 64), "blk.1.ffn_down.weight": (64, 128)}
PROMPT = [*range(20, 60)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapters")
    tiny_model(folder)
    make_adapter(folder / "one.gguf", SHAPES)
    make_adapter(folder / "two.gguf", SHAPES, seed=1)
    return folder


def loaded(folder, *adapters, **options):
    return load(folder / "tiny-llama.gguf", backend="reference", adapters=adapters, **options)


@pytest.fixture(scope="module")
def llm(folder):
    with loaded(folder, folder / "one.gguf", (folder / "two.gguf", 0.5), kv_memory="4MB") as llm:
        yield llm


@pytest.fixture(scope="module")
def plain(folder):
    with loaded(folder) as llm:
        yield llm


def answer(llm, adapters=None, prompt=PROMPT, count=6):
    return llm.generate(prompt, max_tokens=count, adapters=adapters, temperature=0)


def test_choices_are_what_they_say(folder, llm, plain):
    expected = {
        None: {"one": 1.0, "two": 0.5},
        ("one",): {"one": 1},
        ("two", "one"): {"one": 1, "two": 0.5},
        folder / "two.gguf": {"two": 0.5, "one": 0},
        "one": [str(folder / "one.gguf")],
    }
    for choice, same in expected.items():
        assert np.array_equal(llm.logits(PROMPT, choice), llm.logits(PROMPT, same))
    distinct = [llm.logits(PROMPT, choice) for choice in (None, [], "one", "two", {"one": 2}, {"one": -1})]
    assert all(np.abs(a - b).max() > 0.01 for i, a in enumerate(distinct) for b in distinct[:i])
    assert np.array_equal(llm.logits(PROMPT, []), plain.logits(PROMPT))
    assert np.array_equal(llm.logits(PROMPT, {"one": 0, "two": 0.0}), plain.logits(PROMPT))


def test_a_scale_of_the_load_is_that_of_requests(folder, llm):
    with loaded(folder, (folder / "one.gguf", 2)) as twice:
        assert np.array_equal(twice.logits(PROMPT), llm.logits(PROMPT, {"one": 2.0}))


def test_side_by_side_each_gets_its_own(llm, plain):
    choices = [None, [], "one", {"two": 3}, {"one": 1, "two": -1}, []]
    streams = [llm.stream(PROMPT, max_tokens=12, temperature=1, seed=5, adapters=choice) for choice in choices]
    together = [stream.collect() for stream in streams]
    for choice, done in zip(choices, together, strict=True):
        assert done.ids == llm.generate(PROMPT, max_tokens=12, temperature=1, seed=5, adapters=choice).ids
    assert together[1].ids == together[5].ids == plain.generate(PROMPT, max_tokens=12, temperature=1, seed=5).ids
    assert len({tuple(done.ids) for done in together}) > 2


def test_scores_and_samples_choose_too(llm, plain):
    assert llm.score(PROMPT, adapters=[]) == plain.score(PROMPT)
    assert llm.score(PROMPT, adapters="one") != llm.score(PROMPT, adapters=[])
    some = llm.samples(PROMPT, 2, max_tokens=8, temperature=1, seed=3, adapters="two")
    alone = [llm.generate(PROMPT, max_tokens=8, temperature=1, seed=3 + i, adapters="two") for i in range(2)]
    assert [done.ids for done in some] == [done.ids for done in alone]


class TestCache:
    """Beginnings are shared by those who want the same of every adapter, and by nobody else."""

    def cached(self, llm, adapters):
        return answer(llm, adapters, count=1).timings.cached_tokens

    def test_each_choice_has_its_own_beginnings(self, folder):
        with loaded(folder, folder / "one.gguf", folder / "two.gguf", kv_memory="4MB") as llm:
            choices = [[], "one", "two", {"one": 2}, {"one": 2, "two": 1}]
            assert [self.cached(llm, choice) for choice in choices] == [0] * 5
            assert [self.cached(llm, choice) for choice in choices] == [32] * 5
            assert self.cached(llm, None) == 0
            assert self.cached(llm, ["two", "one"]) == 32
            assert self.cached(llm, {"one": 0}) == 32
            llm._engine.call(lambda loop: loop.scheduler.check_integrity())

    def test_it_is_explained(self, folder):
        with loaded(folder, folder / "one.gguf") as llm:
            answer(llm, "one")
            assert llm.explain_cache(PROMPT, adapters=["one"]).reason == "whole"
            assert llm.explain_cache(PROMPT, adapters=[]).reason == "new"
            assert llm.explain_cache(PROMPT).cached_tokens == 32

    def test_the_disk_keeps_them_apart(self, folder, tmp_path):
        options = {"disk_cache": tmp_path / "cache", "kv_memory": "4MB"}
        with loaded(folder, folder / "one.gguf", folder / "two.gguf", **options) as llm:
            answer(llm, "two")
            answer(llm, [])
        with loaded(folder, folder / "two.gguf", **options) as llm:
            assert self.cached(llm, {"two": 2}) == 0
            assert self.cached(llm, "two") == 32
        with loaded(folder, **options) as llm:
            assert self.cached(llm, None) == 32

    def test_sessions_hold_one_choice(self, folder, tmp_path):
        path = tmp_path / "session"
        with loaded(folder, folder / "one.gguf") as llm:
            answer(llm)
            assert llm.save_session(path, adapters=[]) == 0
            assert llm.save_session(path) == 32
        with loaded(folder, folder / "two.gguf", folder / "one.gguf") as llm:
            for choice in (None, [], "two", {"one": 2}):
                with pytest.raises(ConfigError, match="saved with adapters 'one=1'"):
                    llm.load_session(path, adapters=choice)
            assert llm.load_session(path, adapters="one") == 32
            assert self.cached(llm, "one") == 32
            assert self.cached(llm, []) == 0


def test_a_fork_goes_on_with_its_adapters(llm):
    with llm.stream(PROMPT, max_tokens=8, temperature=0, adapters="one") as stream:
        next(stream)
        branch = stream.fork()
        same = stream.fork(adapters={"one": 1.0})
        with pytest.raises(RequestError, match="a fork goes on with the adapters of its origin"):
            stream.fork(adapters=[])
        rest = stream.collect().ids
    assert branch.collect().ids == same.collect().ids == rest


def test_guessed_tokens_change_nothing(folder, llm):
    text = [5, 6, 7, 8] * 8
    with loaded(folder, folder / "one.gguf", speculation="off") as slow:
        for choice in ("one", []):
            assert answer(llm, choice, text, 40).ids == answer(slow, choice, text, 40).ids


def test_a_draft_model_may_know_nothing_of_adapters(folder, llm):
    draft = folder / "tiny-llama.gguf"
    with loaded(folder, folder / "one.gguf", speculation="off", draft_model=draft) as quick:
        for choice in ("one", []):
            assert answer(quick, choice).ids == answer(llm, choice).ids


def test_names_are_those_of_files_or_given(folder):
    adapters = {"a": folder / "one.gguf", "b": (folder / "one.gguf", 0.5)}
    with load(folder / "tiny-llama.gguf", backend="reference", adapters=adapters) as llm:
        assert np.array_equal(llm.logits(PROMPT, {"a": 1.0}), llm.logits(PROMPT, {"b": 1.0}))
        assert llm.info()["adapters"] == "a=1, b=0.5"


def test_adapters_that_were_not_loaded_are_request_errors(folder, llm, plain):
    with pytest.raises(RequestError, match="'tow' was not loaded; did you mean 'two'"):
        answer(llm, ["one", "tow"])
    with pytest.raises(RequestError, match="the model was loaded without any; give 'one' to load"):
        answer(plain, {"one": 1})
    with pytest.raises(RequestError, match=r"other\.gguf' was not loaded.*; loaded: one, two"):
        llm.score(PROMPT, adapters=folder / "other.gguf")
    assert answer(plain, []).ids == answer(plain).ids


SCALES = ("much", float("nan"), True, 1e39, None)


@pytest.mark.parametrize("choice", [3, [3], {3: 1}, *({"one": scale} for scale in SCALES)])
def test_choices_that_make_no_sense_are_config_errors(llm, choice):
    with pytest.raises(ConfigError) as caught:
        answer(llm, choice)
    assert caught.value.key == "adapters"


@pytest.mark.parametrize(
    "given", ["one.gguf", 3, [3], [("one.gguf",)], [("one.gguf", None)], [("a", 1, 2)], {"": "one.gguf"}, [""]]
)
def test_keywords_that_make_no_sense(folder, given):
    with pytest.raises(ConfigError) as caught:
        load(folder / "tiny-llama.gguf", adapters=given)
    assert caught.value.key == "adapters"


def test_two_of_one_name_want_names(folder):
    with pytest.raises(ConfigError, match="two adapters are called 'one'"):
        loaded(folder, folder / "one.gguf", (folder / "one.gguf", 2))


def test_files_that_are_no_adapters(folder, tmp_path):
    with pytest.raises(ConfigError, match="nowhere"):
        loaded(folder, Path("nowhere.gguf"))
    with pytest.raises(FormatError, match=r"general\.type is None, not 'adapter'"):
        loaded(folder, folder / "tiny-llama.gguf")
    with pytest.raises(UnsupportedError, match=r"token_embd\.weight, which is the embedding"):
        loaded(folder, make_adapter(tmp_path / "a.gguf", {"token_embd.weight": (300, 64)}))
    cut = tmp_path / "cut.gguf"
    cut.write_bytes((folder / "one.gguf").read_bytes()[:-500])
    with pytest.raises(FormatError, match=r"cut\.gguf"):
        loaded(folder, cut)


def test_an_adapter_alone_is_no_model(folder):
    with pytest.raises(FormatError, match=r"one\.gguf: this is an adapter: load its model with"):
        load(folder / "one.gguf")


def test_an_adapter_may_go_once_it_is_loaded(folder, tmp_path):
    path = make_adapter(tmp_path / "gone.gguf", SHAPES)
    with loaded(folder, path) as llm:
        before = llm.logits(PROMPT)
        path.write_bytes(b"")
        assert np.array_equal(llm.logits(PROMPT), before)
