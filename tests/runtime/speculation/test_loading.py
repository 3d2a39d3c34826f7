"""`load(speculation=..., draft_model=...)` over real programs."""

from __future__ import annotations

import numpy as np
import pytest

import halfbyte
from halfbyte import ConfigError, UnsupportedError
from halfbyte.formats import Typed
from halfbyte.runtime import draft_loading
from halfbyte.runtime.backends import BACKENDS
from tests.model.tiny import make_tiny_gguf, tiny_model
from tests.model.tiny_tokenizer import MERGES, tokenizer_metadata
from tests.runtime.speculation.eager import be_eager

REPEATING = [*range(40, 60), *range(40, 52)]
DRAWN = {"temperature": 0.7, "repeat_penalty": 1.05, "seed": 3}


def load(path, **options):
    return halfbyte.load(path, **{"backend": "reference", "context": 96, **options})


def counts(llm):
    return llm._engine.call(lambda loop: loop.speculation.counts)


def renamed(token, name):
    """The metadata of a vocabulary in which one token is called otherwise."""
    tokens = tokenizer_metadata(300)["tokenizer.ggml.tokens"]
    tokens[token] = name
    return {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.merges": [*MERGES[:-1]]}


def longer(by, kind):
    """The metadata of a vocabulary with more tokens behind."""
    pairs = tokenizer_metadata(300 + by)
    types = pairs["tokenizer.ggml.token_type"].value.copy()
    types[300:] = kind
    return {
        "tokenizer.ggml.tokens": pairs["tokenizer.ggml.tokens"],
        "tokenizer.ggml.token_type": Typed(np.asarray(types, np.int32), "i32"),
    }


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"speculation": "ngrams"}, UnsupportedError, "'ngrams'.*known: ngram, off"),
        ({"max_draft": 16}, ConfigError, "max_draft must be at most 15"),
        ({"max_draft": 0}, ConfigError, "max_draft must be an integer of at least 1"),
        ({"draft_model": 7}, ConfigError, "draft_model must be a path, a name or None"),
    ],
)
def test_options_are_checked(options, error, message):
    with pytest.raises(error, match=message):
        halfbyte.load("no-such.gguf", **options)


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_answers_are_the_same_in_every_way(tmp_path, monkeypatch, backend):
    be_eager(monkeypatch)
    path, draft = tiny_model(tmp_path), make_tiny_gguf(tmp_path / "draft.gguf", n_layers=1)
    prompts = [REPEATING, REPEATING[3:], [5, 6, 7]]
    answers = []
    for options in ({"speculation": "off"}, {}, {"draft_model": draft}, {"draft_model": path, "speculation": "off"}):
        with load(path, backend=backend, threads=1, **options) as llm:
            drawn, best = (llm.generate(prompts, max_tokens=40, **more) for more in (DRAWN, {}))
            answers.append([done.ids for done in (*drawn, *best)])
            found = counts(llm)
            assert (found.drafted > 0) is (options != {"speculation": "off"})
    # The token that ends an answer is none of it.
    assert found.accepted >= found.drafted - 2 * len(prompts)
    assert answers[1:] == answers[:1] * 3


def test_memory_of_the_draft_model_follows_the_models(tmp_path, monkeypatch):
    jobs = []
    build = BACKENDS["reference"]
    monkeypatch.setattr(BACKENDS, "_resolved", {"reference": lambda job: jobs.append(job) or build(job)})
    path, draft = tiny_model(tmp_path), make_tiny_gguf(tmp_path / "draft.gguf", n_layers=1)
    load(path, draft_model=draft, kv_memory="3MB").close()
    assert jobs[0].n_pages == jobs[1].n_pages > 100
    assert jobs[1].config.max_num_batched_tokens == draft_loading.MOST_TOKENS


def test_a_draft_model_with_another_vocabulary_is_refused(tmp_path):
    path = tiny_model(tmp_path)
    other = make_tiny_gguf(tmp_path / "other.gguf", metadata=renamed(267, "ings"))
    with pytest.raises(ConfigError, match=r"1 of 300 tokens differ, the first is token 267.*'ings'.*'ing'"):
        load(path, draft_model=other)
    more = make_tiny_gguf(tmp_path / "more.gguf", n_vocab=305, metadata=longer(5, 1))
    with pytest.raises(ConfigError, match="305 tokens, the model 300, and token 300 of the draft model"):
        load(path, draft_model=more)
    with pytest.raises(ConfigError, match="token 300 of the model"):
        load(more, draft_model=path)


def test_control_tokens_and_filling_may_differ(tmp_path):
    path = tiny_model(tmp_path)
    other = make_tiny_gguf(tmp_path / "other.gguf", metadata=renamed(299, "<unused>"))
    more = make_tiny_gguf(tmp_path / "more.gguf", n_vocab=305, metadata=longer(5, 5))
    for model, draft in ((path, other), (path, more), (more, path)):
        with load(model, draft_model=draft) as llm:
            assert llm.generate(REPEATING, max_tokens=5).ids


def test_a_draft_model_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match="there is no file"):
        load(tiny_model(tmp_path), draft_model=tmp_path / "none.gguf")


def test_a_real_model_that_repeats_itself_says_the_same_with_drafts(smollm2_path, monkeypatch):
    be_eager(monkeypatch)
    text = "def area(width, height):\n    return width * height\n\n\n" * 2 + "def area("
    answers = []
    for speculation in ("off", "ngram"):
        with halfbyte.load(smollm2_path, context=256, threads=2, speculation=speculation) as llm:
            answers.append(
                [llm.generate(text, max_tokens=24, **more) for more in ({}, {"temperature": 0.8, "seed": 1})]
            )
    assert [done.ids for done in answers[0]] == [done.ids for done in answers[1]]
    timings = answers[1][0].timings
    assert timings.drafted_tokens >= timings.accepted_tokens > 4
