"""The Python face over the toy model and a toy alphabet."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from halfbyte import ContextExceededError
from halfbyte.runtime.sampling.params import SamplingParams
from tests.runtime.toy import Gate, ToyExecutable, toy_answer, toy_logits, wait_until
from tests.runtime.toy_llm import ANSWER, TEXT, pages_used, toy_llm


@pytest.fixture
def llm():
    with toy_llm() as made:
        yield made


def test_a_completion_tells_all(llm):
    done = llm.generate("BC", max_tokens=12, temperature=0.0)
    assert (done.text, list(done.ids), done.prompt_ids) == (TEXT, ANSWER, (1, 2))
    assert done.finish_reason == "length"
    assert (done.timings.prompt_tokens, done.timings.cached_tokens, done.timings.completion_tokens) == (2, 0, 12)
    assert done.timings.first_token_s >= done.timings.prefill_s > 0
    assert done.timings.decode_s > 0
    assert done.timings.decode_tok_s == pytest.approx(11 / done.timings.decode_s)


def test_ids_lists_and_arrays_are_prompts_too(llm):
    for prompt in ([1, 2], (1, 2), np.array([1, 2]), np.array([1, 2], np.uint8)):
        assert llm.generate(prompt, max_tokens=12).text == TEXT


def test_events_add_up_to_the_completion_and_the_last_one_ends(llm):
    events = list(llm.stream("BC", max_tokens=12))
    assert "".join(event.text for event in events) == TEXT
    assert [i for event in events for i in event.ids] == ANSWER
    assert [event.finish_reason for event in events[:-1]] == [None] * (len(events) - 1)
    assert events[-1].finish_reason == "length"
    assert events[-1].timings.completion_tokens == 12
    assert all(event.text for event in events[:-1])


def test_a_character_is_never_cut():
    class Halves(ToyExecutable):
        def run(self, batch, logits):
            super().run(batch, logits)
            logits[:, 7 + (batch.positions[batch.logit_rows] % 2)] = 99

    with toy_llm(Halves()) as llm:
        events = list(llm.stream([1, 1, 1, 1], max_tokens=5))
    text = "".join(event.text for event in events)
    assert text.strip("\ufffd") == "éé"
    assert [event.text for event in events if "\ufffd" in event.text] in ([events[0].text], [events[-1].text])


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_stop_string_ends_the_answer_before_it(llm, length):
    stop = TEXT[4 : 4 + length]
    done = llm.generate("BC", max_tokens=12, stop=[stop, "not there"])
    assert done.text == TEXT[: TEXT.index(stop)]
    assert done.finish_reason == "stop"
    assert "".join(event.text for event in llm.stream("BC", max_tokens=12, stop=stop)) == done.text
    wait_until(lambda: pages_used(llm) == 0)


def test_text_held_back_for_a_stop_string_comes_at_the_end(llm):
    assert llm.generate("BC", max_tokens=12, stop=TEXT[-1] + "?").text == TEXT


def test_chat_goes_through_the_template(llm):
    messages = [{"role": "user", "content": "bc"}]
    assert llm.chat(messages, max_tokens=12, chat_template_kwargs={"shout": True}).text == TEXT
    assert "".join(event.text for event in llm.stream_chat([{"role": "user", "content": "BC"}], max_tokens=12)) == TEXT


def test_closing_a_stream_cancels_and_ends_it():
    with toy_llm(context=64) as llm:
        stream = llm.stream("BC")
        first = next(stream)
        stream.close()
        stream.close()
        assert first.text
        assert list(stream) == []
        wait_until(lambda: pages_used(llm) == 0)


def test_leaving_the_with_or_letting_go_of_a_stream_cancels():
    gate = Gate()
    with toy_llm(ToyExecutable(before_run=gate)) as llm:
        with llm.stream("BC"):
            gate.entered.acquire()
        stream = llm.stream("BC")
        del stream
        gc.collect()
        gate.open.release()
        wait_until(lambda: llm.info()["running"] == llm.info()["waiting"] == pages_used(llm) == 0)


def test_a_stream_keeps_its_engine_alive():
    stream = toy_llm().stream("BC", max_tokens=12)
    gc.collect()
    assert stream.collect().text == TEXT


@pytest.mark.skipif(sys.platform == "win32", reason="signals of this kind are POSIX")
@pytest.mark.parametrize("call", [lambda llm: llm.generate("BC"), lambda llm: llm.logits([1, 2])])
def test_ctrl_c_stops_the_answer_and_leaves_the_model_usable(call):
    gate = Gate()
    with toy_llm(ToyExecutable(before_run=gate)) as llm:

        def interrupt():
            gate.entered.acquire()
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            call(llm)
        gate.open.release()
        wait_until(lambda: llm.info()["running"] == pages_used(llm) == 0)
        for _ in range(3):
            gate.open.release()
        assert list(llm.generate("BC", max_tokens=2).ids) == ANSWER[:2]


def test_a_context_that_is_full_ends_with_length(llm):
    done = llm.generate([1] * 31)
    assert (len(done.ids), done.finish_reason) == (1, "length")
    with pytest.raises(ContextExceededError, match="larger context="):
        llm.generate([1] * 32)


def test_logits_of_every_token_whatever_the_chunks():
    ids = [3, 1, 4, 1, 5, 9, 2, 6] * 4
    expected = np.array([toy_logits(np.array(ids[: i + 1])) for i in range(len(ids))])
    for chunk in (1, 5, 512):
        with toy_llm(max_num_batched_tokens=chunk) as llm:
            logits = llm.logits(ids)
            assert logits.dtype == np.float32
            assert np.array_equal(logits, expected)
            with pytest.raises(ContextExceededError):
                llm.logits([*ids, 1])


def test_the_seed_of_a_drawn_answer_gives_it_again(llm):
    drawn = llm.generate("BC", max_tokens=12, temperature=2, top_k=0)
    again = llm.generate("BC", max_tokens=12, temperature=2, top_k=0, seed=drawn.seed)
    other = llm.generate("BC", max_tokens=12, temperature=2, top_k=0, seed=drawn.seed + 1)
    assert drawn.ids == again.ids != other.ids


def test_the_models_defaults_hold_where_nothing_is_said():
    with toy_llm(defaults=SamplingParams(temperature=2, top_k=0, seed=5)) as llm:
        assert llm.generate("BC", max_tokens=12).seed == 5
        assert llm.generate("BC", max_tokens=12).text != TEXT
        assert llm.generate("BC", max_tokens=12, temperature=0).text == TEXT
        assert llm.generate("BC", max_tokens=12, temperature=None).text != TEXT


def test_threads_share_one_model(llm):
    texts = [None] * 8

    def ask(place):
        texts[place] = llm.generate([place], max_tokens=9).ids

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [list(text) for text in texts] == [toy_answer([place], 9) for place in range(8)]


LEAVE_IN_THE_MIDDLE = """
from tests.runtime.toy_llm import toy_llm
llm = toy_llm(context=64)
stream = llm.stream("BC")
print(next(stream).text)
"""


def test_a_program_may_end_in_the_middle_of_an_answer():
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", LEAVE_IN_THE_MIDDLE],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.strip() == TEXT[0]


def test_importing_the_package_needs_no_numpy():
    code = "import sys, halfbyte; dir(halfbyte); print('numpy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.stdout.strip() == "False", run.stderr
