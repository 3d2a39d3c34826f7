"""From a SentencePiece model through a GGUF file to the ids of the original."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from halfbyte.errors import FormatError
from halfbyte.tools.convert.tokenizer import read_tokenizer
from halfbyte.tools.convert.tokenizer_battery import TEXTS
from tests.tools.convert.test_tokenizer_json import KEY, through_a_file
from tests.tools.convert.tiny_tokenizers import checkpoint, pieces

MODELS: dict[str, dict[str, Any]] = {
    "llama": {"kind": "bpe", "normalization_rule_name": "identity", "remove_extra_whitespaces": False},
    "bpe as it comes": {"kind": "bpe"},
    "without prefix": {"kind": "bpe", "add_dummy_prefix": False},
    "without bytes": {"kind": "bpe", "byte_fallback": False},
    "user-defined": {
        "kind": "bpe",
        "user_defined_symbols": ("<tool>", "▁▁", "e", "▁the▁l"),
        "control_symbols": ("<c>",),
    },
    "t5": {"kind": "unigram"},
    "unigram with bytes": {"kind": "unigram", "byte_fallback": True, "user_defined_symbols": ("<x>", " ")},
    "case folded": {"kind": "unigram", "normalization_rule_name": "nmt_nfkc_cf"},
    "spaces behind": {"kind": "unigram", "treat_whitespace_as_suffix": True},
}


@pytest.mark.parametrize("name", MODELS)
def test_ids_are_those_of_the_original(name: str, tmp_path: Path) -> None:
    model = pieces(**MODELS[name])
    original = sentencepiece.SentencePieceProcessor(model_proto=model)
    ours, metadata = through_a_file(checkpoint(tmp_path, model), len(original) + 3)
    assert metadata[KEY + "model"] == {"bpe": "llama", "unigram": "t5"}[MODELS[name]["kind"]]
    for text in TEXTS:
        expected = original.encode(text)
        assert ours.encode(text, bos=False, eos=False) == expected, text
        if original.decode(expected) == text:
            assert ours.decode(expected) == text


def test_tokens_of_other_files_are_added_behind(tmp_path: Path) -> None:
    model = pieces("bpe")
    n = len(sentencepiece.SentencePieceProcessor(model_proto=model))
    config = {"added_tokens_decoder": {str(n): {"content": "<|im_end|>", "special": True, "rstrip": True}}}
    folder = checkpoint(tmp_path, model, added_tokens={"<more>": n + 1}, tokenizer_config=config)
    ours, _ = through_a_file(folder, n + 2)
    ids = ours.encode("the<|im_end|>  the <more>", special=True, bos=False)
    assert ids == [*ours.encode("the", bos=False), n, *ours.encode("the ", bos=False), n + 1]
    assert n not in ours.encode("the<|im_end|>", bos=False)


@pytest.mark.parametrize("trims", [False, True])
def test_a_space_goes_before_all_stretches_of_text_or_the_first_alone(trims: bool, tmp_path: Path) -> None:
    model = pieces("bpe", remove_extra_whitespaces=trims)
    old, _ = through_a_file(checkpoint(tmp_path, model), 600)
    new, _ = through_a_file(checkpoint(tmp_path, model, tokenizer_config={"legacy": False}), 600)
    word, bare = old.encode("the", bos=False), new.encode("</s>the", special=True, bos=False)[1:]
    assert old.encode("the</s>the", special=True, bos=False) == [*word, 2, *word]
    assert new.encode("the</s>the</s> the", special=True, bos=False) == [*word, 2, *bare, 2, *word]
    assert new.decode([2, *bare]) == new.decode([2, *word]) == "the"
    assert bare != word


@pytest.mark.parametrize(
    ("config", "bos", "eos"),
    [
        ({}, True, False),
        ({"add_bos_token": False}, False, False),
        ({"add_eos_token": True, "eos_token": "</s>"}, True, True),
    ],
)
def test_marks_at_the_ends_are_as_the_configuration_says(config: Any, bos: bool, eos: bool, tmp_path: Path) -> None:
    model = pieces("bpe")
    ours, metadata = through_a_file(checkpoint(tmp_path, model, tokenizer_config=config), 600)
    assert (metadata[KEY + "add_bos_token"], metadata[KEY + "add_eos_token"]) == (bos, eos)
    plain = ours.encode("the", bos=False, eos=False)
    assert ours.encode("the") == [1] * bos + plain + [2] * eos


@pytest.mark.parametrize(
    "damage", [lambda m: m[:1000], lambda m: b"\xff" * 99, lambda m: b"", lambda m: m[5:], lambda m: b"{}"]
)
def test_garbage_is_named_with_its_file(damage: Any, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"tokenizer\.model: "):
        read_tokenizer(checkpoint(tmp_path, damage(pieces("bpe"))), 600)
