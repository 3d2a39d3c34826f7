"""Log probabilities of answers and of texts, over the toy model."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.errors import ConfigError, RequestError
from tests.runtime.toy import VOCAB, toy_logits
from tests.runtime.toy_llm import toy_llm


def log_softmax(ids):
    row = toy_logits(np.array(ids)).astype(np.float64)
    return row - np.log(np.exp(row).sum())


@pytest.fixture
def llm():
    with toy_llm(max_num_batched_tokens=8, context=100) as made:
        yield made


def test_a_text_is_scored_token_by_token(llm):
    ids = [*range(20)]
    score = llm.score(ids, logprobs=3)
    assert score.ids == tuple(ids)
    assert len(score.tokens) == 19
    for place, found in enumerate(score.tokens, 1):
        truth = log_softmax(ids[:place])
        assert found.token == ids[place]
        assert found.logprob == pytest.approx(truth[ids[place]], abs=1e-5)
        assert [token for token, _ in found.top] == np.argsort(-truth)[:3].tolist()
        assert [logprob for _, logprob in found.top] == pytest.approx(np.sort(truth)[:-4:-1], abs=1e-5)
    assert score.logprob == pytest.approx(sum(token.logprob for token in score.tokens))
    assert score.perplexity == pytest.approx(np.exp(-score.logprob / 19))


def test_several_texts_in_order_and_a_text_of_one_token(llm):
    scores = llm.score(["BCD", "B"])
    assert [score.ids for score in scores] == [(1, 2, 3), (1,)]
    assert scores[0] == llm.score([1, 2, 3])
    assert (scores[1].tokens, scores[1].perplexity) == ((), 1.0)


def test_answers_tell_their_log_probabilities_before_any_sampling(llm):
    done = llm.generate([5], max_tokens=6, logprobs=2, temperature=3.0, seed=1, repeat_penalty=2.0, top_k=0)
    assert len(done.logprobs) == len(done.ids) == 6
    ids = [5]
    for token, found in zip(done.ids, done.logprobs, strict=True):
        truth = log_softmax(ids)
        assert found.token == token
        assert found.logprob == pytest.approx(truth[token], abs=1e-5)
        assert found.top[0] == (truth.argmax(), pytest.approx(truth.max(), abs=1e-5))
        ids.append(token)


def test_events_carry_them_beside_their_ids(llm):
    events = list(llm.stream([5], max_tokens=6, logprobs=0))
    assert all(len(event.logprobs) == len(event.ids) for event in events)
    assert all(found.top == () for event in events for found in event.logprobs)
    assert llm.generate([5], max_tokens=6).logprobs == ()


@pytest.mark.parametrize("count", [-1, 21, 1.5, "3"])
def test_a_number_of_alternatives_out_of_range(llm, count):
    with pytest.raises(ConfigError, match="logprobs must be"):
        llm.score([1, 2], logprobs=count)


def test_a_biased_token_outside_the_vocabulary(llm):
    with pytest.raises(RequestError, match=f"token {VOCAB} is not in the vocabulary"):
        llm.generate([1], logit_bias={VOCAB: 1.0})


def test_a_bias_decides(llm):
    assert set(llm.generate([1], max_tokens=4, logit_bias={9: 1e5}).ids) == {9}
