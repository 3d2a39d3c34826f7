"""What a caller may do at the worst moment: nobody waits for ever, nobody else suffers, nothing is left behind."""

from __future__ import annotations

import asyncio
import linecache
import math
import signal
import sys
import threading
import time

import numpy as np
import pytest

import halfbyte.runtime.sessions as sessions_module
from halfbyte.errors import ConfigError, HalfbyteError, RequestError
from halfbyte.runtime.config import LoadConfig
from tests.runtime.toy import Gate, ToyExecutable, toy_answer, wait_until
from tests.runtime.toy_llm import pages_used, toy_llm

PROMPT = [1, 2]
LONG = list(range(1, 13))


@pytest.fixture
def llm():
    with toy_llm() as loaded:
        yield loaded


class TestASamplerStepThat:
    @pytest.mark.parametrize(
        "call",
        [
            lambda llm, stream: llm.generate(PROMPT),
            lambda llm, stream: llm.samples(PROMPT, 2),
            lambda llm, stream: llm.score(PROMPT),
            lambda llm, stream: llm.logits(PROMPT),
            lambda llm, stream: llm.explain_cache(PROMPT),
            lambda llm, stream: llm.save_session("never"),
            lambda llm, stream: llm.trace("never").__enter__(),
            lambda llm, stream: next(stream),
            lambda llm, stream: stream.fork(),
            lambda llm, stream: asyncio.run(llm.agenerate(PROMPT)),
        ],
    )
    def test_asks_its_own_model_is_told_so(self, llm, call):
        with llm.stream([3, 4]) as other:

            def step(ids, logits):
                with pytest.raises(RequestError, match="wait for itself"):
                    call(llm, other)
                return ids, logits

            assert list(llm.generate(PROMPT, max_tokens=2, samplers=[step]).ids) == toy_answer(PROMPT, 2)

    def test_looks_at_its_own_model_may(self, llm):
        seen = []

        def step(ids, logits):
            seen.append((llm.metrics().running, llm.info()["running"]))
            return ids, logits

        llm.generate(PROMPT, max_tokens=1, samplers=[step])
        assert seen == [(1, 1)]

    def test_closes_its_own_model_does(self, llm):
        def step(ids, logits):
            llm.close()
            return ids, logits

        with pytest.raises(RequestError, match="closed"):
            llm.generate(PROMPT, samplers=[step])

    @pytest.mark.parametrize("error", [KeyboardInterrupt, asyncio.CancelledError, GeneratorExit, SystemExit])
    def test_leaves_by_anything_ends_its_request_alone(self, llm, error):
        def step(ids, logits):
            raise error

        with llm.stream([3, 4]) as other:
            with pytest.raises(RequestError, match=f"the sampler step 'step' failed: {error.__name__}"):
                llm.generate(PROMPT, samplers=[step])
            assert [event.ids[0] for event in other][:5] == toy_answer([3, 4], 5)


class TestPagesThatAreHeld:
    """By somebody who saves or loads a session."""

    def test_make_an_answer_wait_and_do_not_end_it(self):
        with toy_llm(ToyExecutable(n_pages=5), context=20) as llm:
            llm.generate(LONG, max_tokens=1)
            held: list[int] = []
            llm._engine.call(lambda loop: sessions_module._hold(loop, None, b"", held))
            assert len(held) == 3
            with llm.stream([3, 4]) as stream:
                events = [next(stream) for _ in range(6)]
                wait_until(lambda: llm.info()["waiting"] == 1)
                llm._engine.call(lambda loop: loop.scheduler.pool.let_go(held))
                events += stream
            assert [token for event in events for token in event.ids] == toy_answer([3, 4], 18)
            llm._engine.call(lambda loop: loop.scheduler.check_integrity())
            assert pages_used(llm) == 0

    def test_come_back_though_the_wait_for_them_is_interrupted(self, tmp_path, monkeypatch):
        gate = Gate()
        with toy_llm(ToyExecutable(before_run=lambda batch: len(batch.ids) > 5 and gate(batch))) as llm:
            gate.open.release()
            llm.generate(LONG, max_tokens=1)
            gate.entered.acquire()
            for token, call in ((5, llm.save_session), (6, llm.load_session)):
                with llm.stream([token] * 9, max_tokens=1):
                    gate.entered.acquire()
                    main = threading.main_thread().ident
                    threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGINT)).start()
                    threading.Timer(0.15, gate.open.release).start()
                    with pytest.raises(KeyboardInterrupt):
                        call(tmp_path / "session")
                assert pages_used(llm) == 0
                llm._engine.call(lambda loop: loop.scheduler.check_integrity())
                assert [path.name for path in tmp_path.iterdir()] in ([], ["session"])
                llm.save_session(tmp_path / "session")


@pytest.mark.parametrize("path", [None, 3, b"session", ["session"], object(), "\ud800", "a\0b", "a" * 300])
def test_what_is_no_path(llm, path):
    for call in (llm.save_session, llm.load_session, lambda path: llm.trace(path).__enter__()):
        with pytest.raises(ConfigError, match=r"a path|another name|cannot be opened"):
            call(path)
    assert pages_used(llm) == 0


@pytest.mark.parametrize("prompt", [[2**32 + 1, 2], [-1], [50], np.array([2**33] * 9, np.uint64), []])
def test_tokens_that_there_are_not_are_in_no_cache(llm, tmp_path, prompt):
    with pytest.raises(RequestError, match=r"vocabulary|no tokens"):
        llm.explain_cache(prompt)
    with pytest.raises(RequestError, match=r"vocabulary|no tokens"):
        llm.save_session(tmp_path / "session", prompt)
    assert list(tmp_path.iterdir()) == []


def test_template_variables_are_for_messages_alone(llm):
    messages = [{"role": "user", "content": "BC"}]
    assert llm.explain_cache(messages, shout=True).prompt_tokens == 2
    with pytest.raises(ConfigError, match="shout"):
        llm.explain_cache("BC", shout=True)
    with pytest.raises(ConfigError, match="other than 'messages'"):
        llm.explain_cache(messages, messages=[])


@pytest.mark.parametrize("value", [10**400, -(10**400)])
@pytest.mark.parametrize("name", ["temperature", "top_p", "repeat_penalty", "timeout", "seed", "max_tokens"])
def test_integers_beyond_all_floats_are_out_of_range(llm, name, value):
    with pytest.raises(HalfbyteError, match=name):
        llm.generate(PROMPT, **{name: value})


def test_a_stretch_may_be_any_real_number_that_is_a_float():
    assert LoadConfig(prompt_stretch=np.float32(2)).prompt_stretch == 2.0
    assert LoadConfig(prompt_stretch=math.inf).prompt_stretch == math.inf
    assert LoadConfig(prompt_stretch=None).stretch == 2.5
    for value in (10**400, math.nan, 0.5, True, "2"):
        with pytest.raises(ConfigError, match="prompt_stretch"):
            LoadConfig(prompt_stretch=value)


def test_what_is_cancelled_while_it_is_taken_in_ends(llm):
    """Between the last look at what was submitted and the look at what was cancelled."""
    inbox = llm._engine._loop.inbox
    streams = []

    def submit_and_cancel():
        streams.append(llm.stream([7, 8]))
        streams[1].close()

    class Cancelled(type(inbox.cancelled)):
        def popleft(self):
            if len(streams) == 1:
                thread = threading.Thread(target=submit_and_cancel)
                thread.start()
                thread.join()
            return super().popleft()

    gate = Gate()
    llm._engine._loop.executable.before_run = gate
    streams.append(llm.stream([3, 4]))
    gate.entered.acquire()
    inbox.cancelled = Cancelled()
    streams[0].close()
    for _ in range(100):
        gate.open.release()
    wait_until(lambda: sum(llm.metrics().ended.values()) == 2)
    assert llm.metrics().ended["cancelled"] == 2


def test_the_folder_where_one_happens_to_be_is_no_disk_cache():
    with pytest.raises(ConfigError, match="disk_cache must be a folder"):
        LoadConfig(disk_cache="")


INTERRUPTED = ("inbox.py", "errand.py", "request.py", "threading.py")


def interrupted(number, function):
    """Whether Ctrl-C at the `number`-th line came before the end."""

    def trace(frame, event, arg):
        nonlocal number
        file = frame.f_code.co_filename
        # The line that begins a `with` is also where it ends, and there Python looks at no signals.
        leaving = linecache.getline(file, frame.f_lineno).lstrip().startswith("with ")
        if event == "line" and file.endswith(INTERRUPTED) and not leaving:
            number -= 1
            if number < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        function()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


@pytest.mark.parametrize("call", [lambda llm: llm.explain_cache(LONG), lambda llm: llm.generate(LONG, max_tokens=2)])
def test_ctrl_c_may_come_between_any_two_lines(llm, call):
    """Of which Python's own are some."""
    number = 0
    while interrupted(number, lambda: call(llm)):
        time.sleep(0.001)  # the engine shall sleep again
        other = threading.Thread(target=llm.explain_cache, args=[LONG], daemon=True)
        other.start()
        other.join(10)
        assert not other.is_alive(), f"the engine was lost at line {number}"
        number += 1
    assert number >= 10
    wait_until(lambda: pages_used(llm) == 0)
