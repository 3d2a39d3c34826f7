"""From an encoder's checkpoint to vectors of texts: those that the original makes."""

import json

import numpy as np
import pytest
import torch
import transformers

import halfbyte
from halfbyte.cli.main import main
from halfbyte.tools.convert.conversion import Conversion, ConversionChoices
from tests.model.checkpoints.tiny_checkpoint import make
from tests.tools.convert.tiny_tokenizers import checkpoint, word_piece

TEXTS = ["The quick brown fox", "jumps", "over the lazy dog, and then it sleeps in the sun " * 3, "Été 123 ..."]
POOLINGS = {"mean": lambda states: states.mean(axis=0), "cls": lambda states: states[0]}


@pytest.fixture(scope="module", params=[("BertModel", "mean"), ("NomicBertModel", "cls")], ids="-".join)
def original(request, tmp_path_factory):
    """The folder with the converted file in it, and what each text's vector should be."""
    kind, pooling = request.param
    folder, tokenizer = tmp_path_factory.mktemp(kind), word_piece()
    model = make(folder, getattr(transformers, kind), vocab_size=tokenizer.get_vocab_size())
    checkpoint(folder, tokenizer)
    modules = [{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    name = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token"}[pooling]
    (folder / "1_Pooling/config.json").write_text(json.dumps({name: True}))
    vectors = []
    for text in TEXTS:
        with torch.no_grad():
            states = model(torch.tensor([tokenizer.encode(text).ids])).last_hidden_state[0].numpy()
        vectors.append(POOLINGS[pooling](states))
    Conversion(folder, ConversionChoices("f32")).write(folder / "out.gguf")
    return folder / "out.gguf", np.array(vectors)


def test_vectors_are_those_of_the_original(original):
    path, wanted = original
    with halfbyte.load_embedder(path) as embedder:
        assert np.abs(embedder.embed(TEXTS, normalize=False) - wanted).max() < 1e-4
        unit = wanted / np.linalg.norm(wanted, axis=1, keepdims=True)
        assert np.abs(embedder.embed(TEXTS) - unit).max() < 1e-5


def test_a_text_has_the_same_bits_whatever_is_beside_it(original):
    with halfbyte.load_embedder(original[0]) as embedder:
        together = embedder.embed(TEXTS * 30)
        alone = np.concatenate([embedder.embed([text]) for text in TEXTS])
    assert np.array_equal(together, np.tile(alone, (30, 1)))


def test_an_encoder_is_checked_like_any_model(original, capsys):
    assert main(["check", str(original[0])]) == 0
    assert "FAILED" not in capsys.readouterr().out
