"""Folders as `transformers` saves them: ids are those that its own classes give, marks at the ends included."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from halfbyte.tools.convert.tokenizer_battery import TEXTS
from tests.tools.convert.test_tokenizer_json import through_a_file
from tests.tools.convert.tiny_tokenizers import QWEN2, byte_level, unigram, with_fallback, word_piece

transformers = pytest.importorskip("transformers")

_OWN = ("<pad>", "</s>", "<unk>")


def _bpe(made: Any, *more: str) -> dict[str, Any]:
    model = json.loads(made.to_str())["model"]
    vocab = model["vocab"] | {text: len(model["vocab"]) + i for i, text in enumerate(more)}
    return {"vocab": vocab, "merges": [tuple(merge) for merge in model["merges"]]}


def _gemma() -> dict[str, Any]:
    parts = _bpe(with_fallback(""))
    texts = ["<pad>", "<eos>", "<bos>", "<unk>", *(text for text in parts["vocab"] if text != "<unk>")]
    return parts | {"vocab": {text: i for i, text in enumerate(texts)}}


def _pieces() -> list[tuple[str, float]]:
    return [tuple(piece) for piece in json.loads(unigram().to_str())["model"]["vocab"]]


def _xlm_roberta() -> dict[str, Any]:
    inner = [piece for piece in _pieces() if piece[0] not in _OWN]
    ends = [(text, 0.0) for text in ("<s>", "<pad>", "</s>", "<unk>")]
    return {"vocab": [*ends, *inner, ("<mask>", 0.0)]}


CLASSES: dict[str, Callable[[], dict[str, Any]]] = {
    "GPT2Tokenizer": lambda: _bpe(byte_level(), "<|endoftext|>"),
    "Qwen2Tokenizer": lambda: _bpe(byte_level(QWEN2), "<|endoftext|>"),
    "LlamaTokenizer": lambda: _bpe(with_fallback()),
    "GemmaTokenizer": _gemma,
    "RobertaTokenizer": lambda: _bpe(byte_level(), "<s>", "<pad>", "</s>", "<unk>", "<mask>"),
    "BertTokenizer": lambda: {"vocab": word_piece().get_vocab()},
    "T5Tokenizer": lambda: {"vocab": _pieces()},
    "XLMRobertaTokenizer": _xlm_roberta,
}


@pytest.mark.parametrize("name", CLASSES)
def test_ids_are_those_of_the_class(name: str, tmp_path: Path) -> None:
    getattr(transformers, name)(**CLASSES[name]()).save_pretrained(str(tmp_path))
    theirs = getattr(transformers, name).from_pretrained(str(tmp_path))
    ours, _ = through_a_file(tmp_path, len(theirs))
    begin = theirs.convert_ids_to_tokens(theirs("")["input_ids"][:1])
    for text in TEXTS:
        # A text that begins with the mark itself gets no second one from us.
        if not any(text.startswith(mark) for mark in begin):
            assert ours.encode(text, special=True) == theirs(text)["input_ids"], text
