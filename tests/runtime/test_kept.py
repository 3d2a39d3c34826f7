"""What outlives a request: explained, saved to a session, kept on disk."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from halfbyte.errors import ConfigError, FormatError, ResourceError
from halfbyte.runtime.cache.disk_cache import DiskCache
from halfbyte.runtime.origin import Origin
from tests.runtime.toy import ToyExecutable, toy_answer, wait_until
from tests.runtime.toy_llm import pages_used, toy_llm

ORIGIN = Origin(b"the toy model..!", {"model": "toy"})
PROMPT = [*range(10, 30)]


def answer(llm, prompt=PROMPT, count=4):
    done = llm.generate(prompt, max_tokens=count)
    assert list(done.ids) == toy_answer(prompt, count)
    assert pages_used(llm) == 0
    llm._engine.call(lambda loop: loop.scheduler.check_integrity())
    return done


class TestExplainCache:
    """A miss says why."""

    def test_before_anything_is_cached(self):
        with toy_llm() as llm:
            report = llm.explain_cache(PROMPT)
        assert (report.prompt_tokens, report.cached_tokens, report.reason) == (20, 0, "new")

    def test_all_whole_pages(self):
        with toy_llm() as llm:
            answer(llm)
            report = llm.explain_cache(PROMPT)
            assert (report.cached_tokens, report.reason) == (16, "whole")
            assert answer(llm).timings.cached_tokens == 16

    def test_the_first_token_that_differs(self):
        with toy_llm() as llm:
            answer(llm)
            answer(llm, [*PROMPT[:8], 1, 2, 3, 4, 5])
            report = llm.explain_cache([*PROMPT[:14], 40, *PROMPT[15:]])
        assert (report.cached_tokens, report.reason) == (12, "differs")
        assert "at token 14 the prompt has 'i' where a cached text has 'Y'" in report.message

    def test_what_was_evicted(self):
        with toy_llm(ToyExecutable(n_pages=8)) as llm:
            answer(llm)
            answer(llm, [*range(30, 50)])
            report = llm.explain_cache(PROMPT)
            assert report.reason == "evicted"
            assert "kv_memory" in report.message

    def test_a_cache_that_is_off(self):
        with toy_llm(prefix_cache=False) as llm:
            answer(llm)
            assert llm.explain_cache(PROMPT).reason == "off"

    def test_messages(self):
        message = [{"role": "user", "content": "BCDEFBCD"}]
        with toy_llm() as llm:
            llm.chat(message, max_tokens=3)
            assert llm.explain_cache(message).cached_tokens == 4


class TestSession:
    """A session brings back what was computed, in another process too."""

    @pytest.fixture
    def saved(self, tmp_path):
        with toy_llm(origin=ORIGIN) as llm:
            answer(llm)
            answer(llm, [*PROMPT[:8], 1, 2, 3, 4, 5])
            assert llm.save_session(tmp_path / "session") == 28
        return tmp_path / "session"

    def test_beginnings_come_back(self, saved):
        with toy_llm(origin=ORIGIN) as llm:
            assert llm.load_session(saved) == 28
            assert answer(llm).timings.cached_tokens == 16
            assert answer(llm, [*PROMPT[:8], 1, 2, 3, 4, 5]).timings.cached_tokens == 12

    def test_loading_twice_or_over_what_is_known_changes_nothing(self, saved):
        with toy_llm(origin=ORIGIN) as llm:
            answer(llm)
            cached = llm.info()["pages_cached"]
            llm.load_session(saved)
            llm.load_session(saved)
            assert llm.info()["pages_cached"] == cached + 1 + 1
            assert answer(llm).timings.cached_tokens == 16

    def test_one_text_alone(self, tmp_path):
        with toy_llm(origin=ORIGIN) as llm:
            answer(llm)
            answer(llm, [7] * 9)
            assert llm.save_session(tmp_path / "one", PROMPT) == 20
            assert llm.save_session(tmp_path / "none", [1, 2, 3, 4, 5]) == 0

    def test_a_session_of_another_model_is_refused(self, saved):
        with toy_llm(origin=Origin(b"another model..!", {"model": "other"})) as llm:
            with pytest.raises(ConfigError, match="'toy' where now it is model 'other'"):
                llm.load_session(saved)
            assert llm.info()["pages_cached"] == 0

    def test_a_damaged_session_changes_nothing(self, saved):
        data = bytearray(saved.read_bytes())
        data[-3] ^= 1
        saved.write_bytes(data)
        with toy_llm(origin=ORIGIN) as llm:
            answer(llm, [7] * 9)
            before = llm.info()
            with pytest.raises(FormatError, match="checksum"):
                llm.load_session(saved)
            assert llm.info() == before

    def test_pages_that_are_not_enough_change_nothing(self, saved):
        with toy_llm(ToyExecutable(n_pages=5), context=20, origin=ORIGIN) as llm:
            with pytest.raises(ResourceError, match="larger kv_memory") as caught:
                llm.load_session(saved)
            assert caught.value.needed > caught.value.free
            assert llm.info()["pages_free"] == 5

    def test_answers_go_on_while_a_session_is_saved_and_loaded(self, saved, tmp_path):
        with toy_llm(ToyExecutable(n_pages=40), context=60, origin=ORIGIN) as llm:
            talker = llm.stream([3, 4], max_tokens=50)
            llm.load_session(saved)
            llm.save_session(tmp_path / "again")
            assert list(talker.collect().ids) == toy_answer([3, 4], 50)
            assert answer(llm).timings.cached_tokens == 16


def disk(tmp_path, size=1 << 20, fingerprint=ORIGIN.fingerprint):
    return DiskCache(tmp_path / "cache", size, fingerprint, ToyExecutable().page_bytes)


class TestDiskCache:
    """Pages on disk come back in another process."""

    def test_a_prompt_is_found_again_by_the_next_process(self, tmp_path):
        with toy_llm(origin=ORIGIN, disk=disk(tmp_path)) as llm:
            answer(llm)
        with toy_llm(origin=ORIGIN, disk=disk(tmp_path)) as llm:
            assert answer(llm).timings.cached_tokens == 16

    def test_idle_time_is_used_to_save(self, tmp_path):
        first = disk(tmp_path)
        with toy_llm(origin=ORIGIN, disk=first) as llm:
            answer(llm)
            wait_until(lambda: first.counts()["written"] == 5)
            with toy_llm(origin=ORIGIN, disk=disk(tmp_path)) as other:
                assert answer(other).timings.cached_tokens == 16

    def test_what_is_evicted_from_memory_is_on_disk(self, tmp_path):
        with toy_llm(ToyExecutable(n_pages=8), origin=ORIGIN, disk=disk(tmp_path)) as llm:
            prompts = [[n, *PROMPT[1:]] for n in range(9)]
            for prompt in prompts:
                answer(llm, prompt)
            assert [answer(llm, prompt).timings.cached_tokens for prompt in prompts] == [16] * 9

    def test_damage_on_disk_means_computing_again(self, tmp_path):
        with toy_llm(origin=ORIGIN, disk=disk(tmp_path)) as llm:
            answer(llm)
        for path in (tmp_path / "cache").rglob("*"):
            if path.is_file():
                path.write_bytes(path.read_bytes()[:-1] + b"x")
        with toy_llm(origin=ORIGIN, disk=disk(tmp_path)) as llm:
            assert answer(llm).timings.cached_tokens == 0

    def test_another_model_finds_nothing(self, tmp_path):
        with toy_llm(origin=ORIGIN, disk=disk(tmp_path)) as llm:
            answer(llm)
        other = Origin(b"another model..!")
        with toy_llm(origin=other, disk=disk(tmp_path, fingerprint=other.fingerprint)) as llm:
            assert answer(llm).timings.cached_tokens == 0

    def test_few_pages_and_many_threads(self, tmp_path):
        dice = np.random.default_rng(5)
        prompts = [[n, *PROMPT[1:k]] for n, k in dice.integers((0, 2), (4, 20), (40, 2)).tolist()]
        with toy_llm(ToyExecutable(n_pages=9), origin=ORIGIN, disk=disk(tmp_path, size=4000)) as llm:
            wrong = []

            def client(mine):
                wrong.extend(p for p in mine if list(llm.generate(p, max_tokens=5).ids) != toy_answer(p, 5))

            threads = [threading.Thread(target=client, args=(prompts[i::4],)) for i in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(30)
            assert wrong == []
            llm._engine.call(lambda loop: loop.scheduler.check_integrity())
