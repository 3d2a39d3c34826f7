"""What a caller can get wrong, and what it is told."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte import ConfigError, RequestError, ResourceError
from halfbyte.runtime import reader as reader_module
from tests.runtime.toy import VOCAB
from tests.runtime.toy_llm import toy_llm


@pytest.fixture
def llm():
    with toy_llm() as made:
        yield made


@pytest.mark.parametrize("kwargs", [{"messages": []}, {1: 2}, "shout"])
def test_template_variables_that_make_no_sense(llm, kwargs):
    with pytest.raises(ConfigError, match="chat_template_kwargs"):
        llm.chat([{"role": "user", "content": "BC"}], chat_template_kwargs=kwargs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temprature": 1}, "'temprature'; did you mean 'temperature'"),
        ({"max_token": 1}, "'max_token'; did you mean 'max_tokens'"),
        ({"max_tokens": 0}, "max_tokens must be"),
        ({"max_tokens": 1.5}, "max_tokens must be"),
        ({"temperature": float("nan")}, "temperature must be"),
        ({"stop": [""]}, "stop must be"),
        ({"stop": 5}, "stop must be"),
        ({"spelled": [5]}, "spelled must be"),
        ({"top_p": 2, "min_p": -1}, "top_p .*; min_p"),
    ],
)
def test_wrong_options_are_refused_at_once_everywhere(llm, options, message):
    messages = [{"role": "user", "content": "BC"}]
    for call in (llm.generate, llm.stream):
        with pytest.raises(ConfigError, match=message):
            call("BC", **options)
    for call in (llm.chat, llm.stream_chat):
        with pytest.raises(ConfigError, match=message):
            call(messages, **options)


def test_a_chat_option_is_none_of_generate(llm):
    with pytest.raises(ConfigError, match="chat_template_kwargs"):
        llm.generate("BC", chat_template_kwargs={})


@pytest.mark.parametrize("prompt", [[1.5], [[[1]]], [[1], [1.5]], [None], ["B", 1], 3, [2**70], [True], b"BC"])
def test_prompts_that_are_no_tokens(llm, prompt):
    with pytest.raises(RequestError, match="flat list of token ids"):
        llm.generate(prompt)
    with pytest.raises(RequestError, match="flat list of token ids"):
        llm.logits(prompt)


@pytest.mark.parametrize("ids", [None, 5, "BC", b"BC", [1.0], ["B"], [[1]], np.array([[1]]), object()])
def test_ids_to_detokenize_that_are_no_tokens(llm, ids):
    with pytest.raises(RequestError, match="flat list of token ids"):
        llm.detokenize(ids)


@pytest.mark.parametrize("ids", [[1, 2], (1, 2), np.array([1, 2], np.uint8), iter([1, 2]), range(1, 3), {1: 0, 2: 0}])
def test_ids_to_detokenize_may_come_from_any_iterable(llm, ids):
    assert llm.detokenize(ids) == "BC"


@pytest.mark.parametrize("text", [None, 5, b"BC", ["B"], [1]])
def test_text_to_tokenize_must_be_text(llm, text):
    with pytest.raises(RequestError, match="must be a string"):
        llm.tokenize(text)


@pytest.mark.parametrize("prompt", [[], "", [-1], [VOCAB], [2**62], np.array([2**64 - 1], np.uint64)])
def test_prompts_outside_the_vocabulary_or_empty(llm, prompt):
    with pytest.raises(RequestError, match=r"no tokens|not in the vocabulary"):
        llm.generate(prompt)


def test_logits_that_do_not_fit_memory_are_refused_with_bytes(llm, monkeypatch):
    monkeypatch.setattr(reader_module, "free_memory", lambda: 399)
    with pytest.raises(ResourceError) as caught:
        llm.logits([1, 2])
    assert (caught.value.needed, caught.value.free) == (2 * VOCAB * 4, 399)


def test_a_closed_model_says_so(llm):
    llm.close()
    llm.close()
    with pytest.raises(RequestError, match="closed"):
        llm.generate("BC")
    with pytest.raises(RequestError, match="closed"):
        llm.logits([1])
