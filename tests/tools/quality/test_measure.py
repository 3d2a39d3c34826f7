"""Figures of whole models: right, and refused where they would mean nothing."""

from __future__ import annotations

import tracemalloc
from contextlib import ExitStack

import numpy as np
import pytest

from halfbyte.errors import ConfigError, FormatError, UnsupportedError
from halfbyte.runtime.bare import BareModel
from halfbyte.tools.quality import pieces as pieces_module
from halfbyte.tools.quality.measure import measure, score
from halfbyte.tools.quality.pieces import Pieces
from halfbyte.tools.quality.windows import Windows
from tests.model.tiny import make_tiny_gguf, tiny_model
from tests.tools.quality.scored import divergences, perplexity, second_halves

WINDOW = 32
TEXT = "the thing and then another one: " * 5 + "4 over"
EXACT = {"rel": 1e-4, "abs": 1e-6}


@pytest.fixture
def opened():
    """Open models that are closed in the end."""
    with ExitStack() as stack:

        def enter(path, window=WINDOW, backend="reference", **choices):
            return stack.enter_context(BareModel(path, window=window, backend=backend, threads=2, **choices))

        yield enter


@pytest.fixture
def pair(tmp_path, opened):
    """A base and a model whose last norm differs."""
    base = make_tiny_gguf(tmp_path / "base.gguf")
    changed = {"output_norm.weight": np.linspace(0.3, 0.6, 64)}
    return opened(base), opened(make_tiny_gguf(tmp_path / "model.gguf", tensors=changed))


def test_figures_are_those_of_float64_on_whole_windows(pair):
    base, model = pair
    ids = np.array(model.tokenizer.encode(TEXT), np.int32)
    figures = measure(model, TEXT, base=base)
    (own, came), (other, _) = second_halves(model, ids, WINDOW), second_halves(base, ids, WINDOW)
    far = divergences(other, own)
    assert len(ids) % WINDOW
    assert (figures.tokens, figures.windows) == (len(came), len(ids) // WINDOW)
    assert (figures.perplexity, figures.perplexity_se) == pytest.approx(perplexity(own, came), **EXACT)
    found = figures.divergence
    assert (found.base_perplexity, found.base_perplexity_se) == pytest.approx(perplexity(other, came), **EXACT)
    assert found.mean_kld == pytest.approx(far.mean(), **EXACT)
    assert found.mean_kld_se == pytest.approx(far.std() / np.sqrt(len(far) - 1), **EXACT)
    assert found.median_kld == pytest.approx(np.median(far), **EXACT)
    assert found.p99_kld == pytest.approx(np.quantile(far, 0.99), **EXACT)
    assert found.max_kld == pytest.approx(far.max(), **EXACT)
    assert found.top1 == np.mean(own.argmax(axis=1) == other.argmax(axis=1))
    assert 0 < found.top1 < 1
    assert 1e-3 < found.median_kld < found.p99_kld < found.max_kld


def test_divergence_is_of_the_base_from_the_model_and_not_the_other_way_round(pair):
    one, other = (measure(a, TEXT, base=b).divergence.mean_kld for a, b in (pair, pair[::-1]))
    assert abs(one - other) > 1e-3 * one


def test_a_model_alone_has_the_same_perplexity_and_no_divergence(pair):
    base, model = pair
    alone = measure(model, TEXT)
    assert alone.divergence is None
    assert alone.perplexity == measure(model, TEXT, base=base).perplexity


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_a_model_does_not_diverge_from_itself(tmp_path, opened, backend):
    path = tiny_model(tmp_path)
    figures = measure(opened(path, backend=backend), TEXT, base=opened(path, backend=backend))
    found = figures.divergence
    assert found.mean_kld == found.max_kld == 0.0
    assert found.top1 == 1.0
    assert found.base_perplexity == figures.perplexity


def test_kernels_give_the_references_figures(tmp_path, opened):
    path = tiny_model(tmp_path)
    found = measure(opened(path, backend="cpu"), TEXT, base=opened(path))
    assert found.perplexity == pytest.approx(found.divergence.base_perplexity, rel=1e-2)
    assert found.divergence.mean_kld < 1e-4


@pytest.mark.parametrize("arch", ["llama", "gemma3"])
def test_logits_in_pieces_are_those_of_the_whole_window_to_the_bit(tmp_path, opened, arch, monkeypatch):
    model = opened(tiny_model(tmp_path, arch), backend="cpu")
    ids = np.array(model.tokenizer.encode(TEXT), np.int32)[:WINDOW]
    whole = model.logits(ids, np.arange(16, 31, dtype=np.int32))
    monkeypatch.setattr(pieces_module, "PIECE_BYTES", 4 * model.vocab_size * 4)
    parts = [piece.copy() for piece in Pieces(model, 16, 31).of(ids)]
    assert {len(part) for part in parts} == {3, 4}
    assert np.array_equal(np.concatenate(parts), whole)


def test_the_begin_token_stands_first_in_every_window_where_the_file_wants_one(tmp_path, opened):
    path = make_tiny_gguf(tmp_path / "bos.gguf", metadata={"tokenizer.ggml.add_bos_token": True})
    model = opened(path)
    ids = np.array(model.tokenizer.encode(TEXT), np.int32)
    bos_id = model.tokenizer.bos_id
    assert ids[0] == bos_id
    with_bos, without = (perplexity(*second_halves(model, ids, WINDOW, bos)) for bos in (bos_id, None))
    found = measure(model, TEXT)
    assert (found.perplexity, found.perplexity_se) == pytest.approx(with_bos, **EXACT)
    assert abs(found.perplexity - without[0]) > 1e-3


def test_memory_does_not_grow_with_the_text(pair):
    base, model = pair
    long = np.tile(np.array(model.tokenizer.encode(TEXT), np.int32)[: 4 * WINDOW], 32)
    few, many = Windows(long[: 4 * WINDOW], WINDOW), Windows(long, WINDOW)
    score(model, few, base)  # fills every cache
    peaks = []
    for windows in (few, many):
        tracemalloc.start()
        score(model, windows, base)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # A divergence in float32 is kept, and copied once for its percentiles; a list of floats would be 32 bytes a token.
    assert peaks[1] - peaks[0] < 16 * (len(many) - len(few)) * many.scored


def test_progress_counts_windows(pair):
    told = []
    measure(pair[1], TEXT, most_windows=2, progress=lambda *words: told.append(words))
    assert told == [("score", 0, 2), ("score", 1, 2), ("score", 2, 2)]


def test_a_window_beyond_the_models_context_is_refused(tmp_path, opened):
    with pytest.raises(ConfigError, match=r"window of 257 is more than the 256 tokens that .*tiny-llama"):
        opened(tiny_model(tmp_path), window=257)


def test_a_short_text_is_refused(tmp_path, opened):
    with pytest.raises(ConfigError, match="fewer than one window of 256"):
        measure(opened(tiny_model(tmp_path), window=256), "the thing")


def replaced(path, index, token):
    from halfbyte.formats import open_gguf

    with open_gguf(path) as file:
        tokens = file.metadata["tokenizer.ggml.tokens"].tolist()
    tokens[index] = token
    return {"tokenizer.ggml.tokens": tokens}


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"n_vocab": 310}, "300 and 310 tokens"),
        ({"metadata": {"tokenizer.ggml.merges": ["t h"]}}, r"the text has \d+ tokens and \d+"),
        ({"metadata": {"tokenizer.ggml.add_bos_token": True}}, "the text has"),
        ({"token": (299, "odd")}, "token 299 is '<unused28>' and 'odd'"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_base_with_another_vocabulary_is_refused(tmp_path, opened, choices, message):
    path = tiny_model(tmp_path)
    if "token" in choices:
        choices = {"metadata": replaced(path, *choices["token"])}
    base = make_tiny_gguf(tmp_path / "other.gguf", **choices)
    with pytest.raises(ConfigError, match=message) as caught:
        measure(opened(path), TEXT, base=opened(base))
    assert str(path) in str(caught.value)
    assert str(base) in str(caught.value)


def test_logits_that_are_no_numbers_name_the_model_and_the_place(tmp_path, opened):
    path = make_tiny_gguf(tmp_path / "nan.gguf", tensors={"output_norm.weight": np.full(64, np.nan)})
    with pytest.raises(FormatError, match=r"nan\.gguf: gives logits that are no numbers behind token 16 of window 0"):
        measure(opened(path), TEXT)
    with pytest.raises(FormatError, match=r"nan\.gguf: gives logits that are no numbers"):
        measure(opened(tiny_model(tmp_path)), TEXT, base=opened(path))


def test_an_encoder_predicts_no_text(tmp_path, opened):
    encoder, model = opened(tiny_model(tmp_path, "bert")), opened(tiny_model(tmp_path))
    for own, base in ((encoder, None), (model, encoder)):
        with pytest.raises(UnsupportedError, match="makes vectors of texts and writes none"):
            measure(own, TEXT, base=base)
