"""`halfbyte embed`: a line of JSON for each text."""

import json

import numpy as np
import pytest

import halfbyte
from tests.model.tiny import tiny_model

TEXTS = ["the first", "and another one"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(tiny_model(tmp_path_factory.mktemp("encoder"), "bert"))


def rows(outcome):
    assert (outcome.code, outcome.err) == (0, "")
    return [json.loads(line) for line in outcome.out.splitlines()]


def test_every_text_becomes_a_line(run, no_kernels, model):
    found = rows(run("embed", model, *TEXTS))
    assert [row["text"] for row in found] == TEXTS
    with halfbyte.load_embedder(model) as embedder:
        assert np.array_equal(np.float32([row["embedding"] for row in found]), embedder.embed(TEXTS))
        raw = np.float32([row["embedding"] for row in rows(run("embed", "--raw", "--pooling", "mean", model, *TEXTS))])
        assert np.array_equal(raw, embedder.embed(TEXTS, normalize=False))


def test_lines_of_a_file_and_of_a_pipe_are_texts(run, no_kernels, model, tmp_path):
    file = tmp_path / "texts"
    file.write_text("\n".join([TEXTS[0], "", TEXTS[1], ""]))
    given = rows(run("embed", model, *TEXTS))
    assert rows(run("embed", model, "--file", str(file))) == given
    assert rows(run("embed", model, piped=file.read_bytes())) == given


def test_more_texts_than_go_together_are_all_there(run, no_kernels, model):
    texts = [f"the {i}" for i in range(150)]
    found = rows(run("embed", model, *texts))
    assert [row["text"] for row in found] == texts


def test_a_long_text_is_refused_or_cut(run, no_kernels, model):
    refused = run("embed", model, "x" * 300)
    assert (refused.code, refused.out) == (1, "")
    assert "300 tokens" in refused.err
    assert len(rows(run("embed", model, "--truncate", "x" * 300))) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a text", "--file", "texts"], "one of the two"),
        ([], "no text"),
        (["--pooling", "median", "a"], "no way to pool"),
    ],
)
def test_mistakes_are_told(run, no_kernels, model, words, said):
    outcome = run("embed", model, *words)
    assert outcome.code in (1, 2)
    assert said in outcome.err


def test_a_model_that_writes_is_refused_and_so_is_an_encoder_that_should(run, no_kernels, model, tmp_path):
    assert "`halfbyte generate`" in run("embed", str(tiny_model(tmp_path)), "a").err
    assert "`halfbyte embed`" in run("generate", model, "a").err
