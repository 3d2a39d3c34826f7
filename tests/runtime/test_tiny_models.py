"""Real programs through the whole library: the same answer however it is run."""

from __future__ import annotations

import logging
import threading

import numpy as np
import pytest

import halfbyte
from halfbyte import FormatError, ResourceError
from halfbyte.runtime import fits as fits_module
from halfbyte.runtime.backends import BACKENDS
from halfbyte.runtime.bare import BareModel
from tests.model.tiny import make_tiny_gguf, tiny_model

ARCHS = ("llama", "qwen2", "gemma3")
IDS = [(7 * i * i + 3 * i) % 250 for i in range(70)]
DRAWN = {"max_tokens": 12, "temperature": 1.0, "seed": 3}


@pytest.fixture(scope="module", params=ARCHS)
def path(request, tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp(request.param), request.param)


def load(path, **options):
    return halfbyte.load(path, **{"backend": "cpu", "context": 128, "threads": 2, **options})


def logits_of(path, ids=IDS, **options):
    with load(path, **options) as llm:
        return llm.logits(ids)


@pytest.fixture(scope="module")
def logits(path):
    return logits_of(path)


def test_logits_are_near_the_references(path, logits):
    expected = logits_of(path, backend="reference")
    assert logits.shape == expected.shape == (70, 300)
    # Sums in another order make keys and values round to another half-precision number here and there: the reference
    # itself, in other chunks, is 2.2e-4 away.
    assert np.linalg.norm(logits - expected) <= 1e-3 * np.linalg.norm(expected)


@pytest.mark.parametrize("options", [{"max_num_batched_tokens": n} for n in (1, 7, 64)] + [{"threads": 1}], ids=str)
def test_logits_are_equal_to_the_bit_for_any_chunks_and_threads(path, logits, options):
    assert np.array_equal(logits_of(path, **options), logits)


def test_answers_are_equal_alone_in_company_from_the_cache_and_after_pages_ran_out(path):
    prompts = [IDS[i : i + 30 + i] for i in range(0, 30, 5)]
    with load(path, prefix_cache=False) as llm:
        alone = [llm.generate(prompt, **DRAWN).ids for prompt in prompts]
    with load(path, context=80, max_num_batched_tokens=16) as llm:
        together = [llm.stream(prompt, **DRAWN) for prompt in prompts]
        assert [stream.collect().ids for stream in together] == alone
        again = [llm.generate(prompt, **DRAWN) for prompt in prompts[-2:]]
        assert [done.ids for done in again] == alone[-2:]
        assert again[-1].timings.cached_tokens > 0


def test_scores_are_equal_while_other_threads_are_answered(path, logits):
    with load(path, max_num_batched_tokens=16) as llm:
        talkers = [threading.Thread(target=llm.generate, args=(IDS[:i],), kwargs=DRAWN) for i in range(3, 7)]
        for talker in talkers:
            talker.start()
        assert np.array_equal(llm.logits(IDS), logits)
        for talker in talkers:
            talker.join()


@pytest.fixture
def tiny(tmp_path):
    with load(tiny_model(tmp_path), backend="reference") as llm:
        yield llm


def test_text_goes_in_and_comes_out(tiny):
    ids = tiny.tokenize("then the thing")
    assert tiny.detokenize(ids) == "then the thing"
    done = tiny.generate("then the thing", max_tokens=9)
    assert done.prompt_ids == tuple(ids)
    assert done.text == tiny.detokenize(done.ids)
    assert "".join(event.text for event in tiny.stream(ids, max_tokens=9)) == done.text


def test_a_chat_is_rendered_by_the_files_template(tiny):
    done = tiny.chat([{"role": "user", "content": "the <|im_end|>"}], max_tokens=3)
    rendered = tiny.detokenize(done.prompt_ids, special=True)
    assert rendered == "<|im_start|>user\nthe <|im_end|><|im_end|>\n<|im_start|>assistant\n"
    end = tiny.tokenize("<|im_end|>", special=True)[0]
    assert done.prompt_ids.count(end) == 1


def test_a_context_beyond_the_models_is_cut_and_told(tmp_path, caplog):
    caplog.set_level(logging.INFO, "halfbyte")
    with load(tiny_model(tmp_path), backend="reference", context=1000) as llm:
        assert llm.context == 256
    assert "context 1000" in caplog.text


def test_a_file_recommends_how_to_sample(tmp_path):
    path = make_tiny_gguf(tmp_path / "m.gguf", metadata={"general.sampling.temp": 0.7, "general.sampling.top_k": 9})
    with load(path, backend="reference") as llm:
        assert (llm.sampling_defaults.temperature, llm.sampling_defaults.top_k) == (pytest.approx(0.7), 9)
    path = make_tiny_gguf(tmp_path / "m.gguf", metadata={"general.sampling.top_p": 7.0})
    with pytest.raises(FormatError, match=r"general\.sampling"):
        load(path, backend="reference")


def test_a_model_that_does_not_fit_memory_is_refused_before_it_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(fits_module, "free_memory", lambda: 1000)
    monkeypatch.setattr(BACKENDS, "_resolved", {"reference": lambda job: pytest.fail("allocated")})
    with pytest.raises(ResourceError, match="smaller context=") as caught:
        load(tiny_model(tmp_path), backend="reference")
    assert caught.value.needed > caught.value.free == 1000
    with pytest.raises(ResourceError, match="smaller context="):
        BareModel(tiny_model(tmp_path), window=64, backend="reference")
