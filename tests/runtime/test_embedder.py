"""Vectors of texts: pooled as the file says, the same bits whatever texts are beside them."""

import dataclasses
import itertools
import threading

import numpy as np
import pytest

import halfbyte
from halfbyte.errors import ConfigError, ContextExceededError, RequestError, UnsupportedError
from halfbyte.runtime.whole_texts import pack, step_of
from tests.model.tiny import tiny_model
from tests.model.tiny_traits import ENCODERS

TEXTS = ["the cat", "a", "another text that is longer than the first", "and the thing on the other thing " * 5, "ring"]
CONTEXT = 256


@pytest.fixture(scope="module", params=ENCODERS)
def path(request, tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("encoder"), request.param)


@pytest.fixture(scope="module")
def embedder(path):
    with halfbyte.load_embedder(path, backend="reference") as made:
        yield made


def test_a_vector_is_the_mean_of_its_texts_states(embedder):
    vectors = embedder.embed(TEXTS, normalize=False)
    assert vectors.shape == (len(TEXTS), 64)
    for vector, text in zip(vectors, TEXTS, strict=True):
        states = embedder.states(text)
        assert states.shape == (len(embedder.tokenizer.encode(text)), 64)
        np.testing.assert_allclose(vector, states.mean(axis=0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("pooling", "row"), [("cls", 0), ("last", -1)])
def test_a_vector_may_be_one_state(path, embedder, pooling, row):
    with halfbyte.load_embedder(path, backend="reference", pooling=pooling) as other:
        vectors = other.embed(TEXTS, normalize=False)
        assert np.allclose(vectors, [embedder.states(text)[row] for text in TEXTS], atol=1e-4)
        assert len(other.states(TEXTS[2])) == len(embedder.states(TEXTS[2]))


def test_vectors_have_length_one_unless_told_otherwise(embedder):
    plain, unit = embedder.embed(TEXTS, normalize=False), embedder.embed(TEXTS)
    assert np.allclose(np.linalg.norm(unit, axis=1), 1, atol=1e-6)
    assert np.allclose(unit, plain / np.linalg.norm(plain, axis=1, keepdims=True), atol=1e-6)
    assert embedder.embed([]).shape == (0, 64)


def test_many_texts_keep_their_order_over_steps(embedder):
    texts = [f"{TEXTS[i % 5]} {i}" for i in range(90)]
    together = embedder.embed(texts)
    for i in (0, 41, 89):
        assert np.allclose(together[i], embedder.embed([texts[i]])[0], atol=1e-3)


def test_a_text_longer_than_the_context_is_refused_or_cut(embedder):
    long = "x" * (CONTEXT + 9)
    with pytest.raises(ContextExceededError, match=f"has {CONTEXT + 9} tokens and the model reads {CONTEXT}.*truncate"):
        embedder.embed(["fine", long])
    cut, whole = embedder.embed([long, "x" * CONTEXT], truncate=True)
    assert np.array_equal(cut, whole)


def test_truncation_keeps_the_end_token(embedder, monkeypatch):
    ended = dataclasses.replace(embedder.tokenizer.vocabulary, add_eos=True)
    monkeypatch.setattr(embedder.tokenizer, "vocabulary", ended)
    short, long = (embedder._ids(text, truncate=True) for text in ("x", "x" * 300))
    assert len(short) == 2
    assert long == short[:1] * (CONTEXT - 1) + short[1:]


@pytest.mark.parametrize("texts", ["one text", 3, None, [b"bytes"], ["fine", 3], [""]])
def test_what_is_no_list_of_texts_is_refused(embedder, texts):
    with pytest.raises(RequestError, match="text"):
        embedder.embed(texts)


def test_threads_may_ask_at_once(embedder):
    wanted = [embedder.embed([text]) for text in TEXTS]
    found = [None] * len(TEXTS)

    def ask(i):
        found[i] = embedder.embed([TEXTS[i]])

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(TEXTS))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(*pair) for pair in zip(found, wanted, strict=True))


def test_a_closed_one_says_so(path):
    embedder = halfbyte.load_embedder(path, backend="reference")
    embedder.close()
    embedder.close()
    with pytest.raises(RequestError, match="closed"):
        embedder.embed(["a"])


def test_each_loader_names_the_other(path, tmp_path):
    with pytest.raises(UnsupportedError, match="load_embedder"):
        halfbyte.load(path, backend="reference")
    with pytest.raises(UnsupportedError, match=r"halfbyte\.load or"):
        halfbyte.load_embedder(tiny_model(tmp_path), backend="reference")


def test_pooling_that_the_file_does_not_name_is_the_callers_to_choose(tmp_path):
    none = tiny_model(tmp_path, "bert", metadata={"bert.pooling_type": 0})
    with halfbyte.load_embedder(none, backend="reference") as embedder:
        assert embedder.states("the").shape[1] == 64
        with pytest.raises(RequestError, match="pooling='mean'"):
            embedder.embed(["the"])
    rank = tiny_model(tmp_path, "bert", metadata={"bert.pooling_type": 4})
    with pytest.raises(UnsupportedError, match="pooling_type"):
        halfbyte.load_embedder(rank, backend="reference")
    with halfbyte.load_embedder(rank, backend="reference", pooling="cls") as embedder:
        assert embedder.embed(["the"]).shape == (1, 64)
    with pytest.raises(ConfigError, match="did you mean 'mean'"):
        halfbyte.load_embedder(rank, backend="reference", pooling="meen")


def test_texts_are_packed_in_order_and_never_beyond_the_limits(rng):
    lengths = rng.integers(1, 40, 200).tolist()
    packed = list(pack(lengths, 64, 5))
    assert [index for chosen in packed for index in chosen] == list(range(200))
    assert all(sum(lengths[i] for i in chosen) <= 64 and len(chosen) <= 5 for chosen in packed)
    assert all(
        len(chosen) == 5 or sum(lengths[i] for i in chosen) + lengths[after[0]] > 64
        for chosen, after in itertools.pairwise(packed)
    )


def test_each_text_of_a_step_has_pages_of_its_own():
    batch, counts = step_of([[1, 2, 3], [4], [5, 6, 7, 8, 9]], page_len=2)
    assert counts == [3, 1, 5]
    assert batch.page_table.tolist() == [[0, 1, -1], [2, -1, -1], [3, 4, 5]]
    assert batch.slots.tolist() == [0, 1, 2, 4, 6, 7, 8, 9, 10]
    assert batch.positions.tolist() == [0, 1, 2, 0, 0, 1, 2, 3, 4]
    assert batch.seq_of.tolist() == [0, 0, 0, 1, 2, 2, 2, 2, 2]
    assert step_of([[1, 2, 3], [4], [5, 6]], 2, "last")[0].logit_rows.tolist() == [2, 3, 5]
    assert step_of([[1, 2, 3], [4], [5, 6]], 2, "cls")[0].logit_rows.tolist() == [0, 3, 4]


@pytest.fixture
def rng():
    return np.random.default_rng(3)
