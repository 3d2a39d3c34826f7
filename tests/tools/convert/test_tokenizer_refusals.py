"""What is damaged, and what cannot be expressed, is an error that names the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, models, normalizers

from halfbyte.errors import FormatError, HalfbyteError, UnsupportedError
from halfbyte.tools.convert import tokenizer_json
from halfbyte.tools.convert.tokenizer import read_tokenizer
from tests.tools.convert.tiny_tokenizers import (
    byte_level,
    checkpoint,
    pieces,
    unigram,
    with_added,
    with_fallback,
    word_piece,
)

SIZE = 700
SPLIT = {"type": "Split", "behavior": "Isolated", "invert": False}
ADDED = {"<|endoftext|>": 420, "<|im_start|>": 421, "<|im_end|>": 422, "<tool>": 423}


def edited(make: Callable[[], Tokenizer], *path: Any, to: Any) -> str:
    """A tokenizer's JSON with the value at `path` replaced, or called where it is a function."""
    tree = json.loads(make().to_str())
    *inner, last = path
    place = tree
    for step in inner:
        place = place[step]
    place[last] = to(place[last]) if callable(to) else to
    return json.dumps(tree)


def _twice(tree: Any) -> Any:
    return {
        "type": "TemplateProcessing",
        "single": [{"Sequence": {"id": "A", "type_id": 0}}] * 2,
        "pair": [],
        "special_tokens": {},
    }


def _charsmap(text: str) -> Any:
    return lambda _: {"type": "Precompiled", "precompiled_charsmap": text}


DAMAGED: dict[str, tuple[str, str]] = {
    "broken": ('{"model": {', "is no JSON"),
    "not text": ("\udcff", "is no UTF-8 text"),
    "a list": ("[]", "wants a JSON object"),
    "deep": ("[" * 100_000, "is no JSON"),
    "nothing": ("{}", "cannot read it"),
    "no vocabulary": (edited(byte_level, "model", "vocab", to=None), "cannot read it"),
    "unknown merge": (edited(byte_level, "model", "merges", to=lambda m: [["q", "zz"], *m]), "cannot read it"),
    "merge of three": (edited(byte_level, "model", "merges", to=lambda m: ["a b c", *m[1:]]), "cannot read it"),
    "one id twice": (edited(with_fallback, "model", "vocab", to=lambda v: v | {"zz": 300}), "id 300 stands for both"),
    "a far id": (edited(byte_level, "model", "vocab", to=lambda v: v | ADDED | {"zz": 10**8}), "up to id 100000000"),
    "a shifted id": (edited(byte_level, "model", "vocab", to=lambda v: v | {"zz": 420}), "the library has it as 421"),
    "an odd id": (edited(byte_level, "model", "vocab", to=lambda v: v | {"zz": -1}), "cannot read it"),
    "a piece twice": (edited(unigram, "model", "vocab", to=lambda v: [*v, v[9]]), "are spelt alike"),
    "a bad pattern": (
        edited(byte_level, "pre_tokenizer", to=SPLIT | {"pattern": {"Regex": "(a"}}),
        "cannot read it",
    ),
    "a bad table": (edited(unigram, "normalizer", to=_charsmap("AAAAxx==")), "cannot read it|precompiled_charsmap"),
    "a long added token": (
        edited(byte_level, "added_tokens", 0, "content", to="x" * 20_000),
        "adds a token of 20000 characters",
    ),
    "an odd added token": (edited(byte_level, "added_tokens", 0, "id", to=5), "as 5, and the library has it as 420"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_named_with_the_file(name: str, tmp_path: Path) -> None:
    text, message = DAMAGED[name]
    (tmp_path / "tokenizer.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(HalfbyteError, match=message) as caught:
        read_tokenizer(tmp_path, SIZE)
    assert str(tmp_path / "tokenizer.json") in str(caught.value)


JOINTS = Tokenizer(models.BPE({"a": 0, "##b": 1, "ab": 2}, [("a", "##b")], continuing_subword_prefix="##"))
UNSUPPORTED: dict[str, tuple[str, str]] = {
    "words": (Tokenizer(models.WordLevel({"a": 0, "?": 1}, "?")).to_str(), "unknown model 'WordLevel'.*known: BPE"),
    "marked joints": (JOINTS.to_str(), "with continuing_subword_prefix"),
    "dropout": (edited(byte_level, "model", "dropout", to=0.5), "with dropout 0.5"),
    "other joints": (edited(word_piece, "model", "continuing_subword_prefix", to="@@"), "marks continuations by '@@'"),
    "twice": (edited(byte_level, "post_processor", to=_twice), "holds the text 2 times"),
    "growth": (
        edited(byte_level, "normalizer", to={"type": "Replace", "pattern": {"String": "a"}, "content": "b" * 300}),
        "more than 256 times",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_cannot_be_expressed_is_refused(name: str, tmp_path: Path) -> None:
    text, message = UNSUPPORTED[name]
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(UnsupportedError, match=message) as caught:
        read_tokenizer(tmp_path, SIZE)
    assert str(tmp_path) in str(caught.value)


def test_a_step_that_we_do_not_know_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_json, "unknown_steps", lambda stage, tree: ["Rot13"] if stage == "normalizer" else [])
    with pytest.raises(UnsupportedError, match="unknown normalizer 'Rot13'"):
        read_tokenizer(checkpoint(tmp_path, byte_level()), SIZE)


def test_a_difference_names_the_text_and_both_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("halfbyte.text.pipeline_model.split_merges", lambda merges: [])
    with pytest.raises(
        UnsupportedError, match=r"for the text 'Hello world' the original gives \d+ ids and ours 11, .*place 0"
    ):
        read_tokenizer(checkpoint(tmp_path, byte_level()), SIZE)


def test_an_empty_folder_is_told_what_is_looked_for(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"no tokenizer: looked for tokenizer\.json or tokenizer\.model") as caught:
        read_tokenizer(tmp_path, SIZE)
    assert str(tmp_path) in str(caught.value)


def test_fewer_rows_than_tokens_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"has tokens up to id 423, as .* 300 rows"):
        read_tokenizer(checkpoint(tmp_path, byte_level()), 300)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(FormatError, match=r"tokenizer\.model: has tokens up to id .* 300 rows"):
        read_tokenizer(checkpoint(tmp_path, pieces("bpe")), 300)


def test_added_tokens_without_a_row_are_left_out_unless_a_chat_needs_them(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, byte_level())
    assert "<tool>" not in read_tokenizer(folder, 423)["tokenizer.ggml.tokens"].value  # type: ignore[attr-defined]
    (folder / "chat_template.jinja").write_text("{{ '<tool>' }}")
    with pytest.raises(FormatError, match="as '<tool>'"):
        read_tokenizer(folder, 423)


def test_holes_are_filled_with_unused_tokens(tmp_path: Path) -> None:
    text = edited(byte_level, "model", "vocab", to=lambda v: v | ADDED | {"zz": 450, "": 451, "[PAD440]": 460})
    (tmp_path / "tokenizer.json").write_text(text)
    metadata = read_tokenizer(tmp_path, SIZE)
    tokens = metadata["tokenizer.ggml.tokens"].value  # type: ignore[attr-defined]
    assert (tokens[449], tokens[450], tokens[451], tokens[452]) == ("[PAD449]", "zz", "[PAD451]", "[PAD452]")
    assert len(set(tokens)) == SIZE


CONFIGURED = {
    "an id that differs": {"added_tokens_decoder": {"999": {"content": "<new>"}}},
    "an odd id": {"added_tokens_decoder": {"x": {"content": "<new>"}}},
    "no content": {"added_tokens_decoder": {"424": {}}},
    "an odd template": {"chat_template": [{"name": "a"}]},
    "a number for a template": {"chat_template": 3},
}


@pytest.mark.parametrize("name", CONFIGURED)
def test_a_configuration_that_contradicts_is_an_error(name: str, tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, byte_level(), tokenizer_config=CONFIGURED[name])
    with pytest.raises(FormatError, match="tokenizer"):
        read_tokenizer(folder, SIZE)


def test_an_end_outside_the_vocabulary_is_an_error(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, byte_level(), generation_config={"eos_token_id": [3, SIZE]})
    with pytest.raises(
        FormatError, match=r"generation_config\.json: eos_token_id is 700, and the model has ids 0 to 699"
    ):
        read_tokenizer(folder, SIZE)


def test_a_pattern_without_end_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    made = byte_level(r"(a+)+$|[\s\S]")
    made.normalizer = normalizers.Replace("word", "a" * 40 + "!")
    with pytest.raises(FormatError, match=r"cannot encode .*retry-limit"):
        read_tokenizer(checkpoint(tmp_path, made), SIZE)


@pytest.mark.parametrize("make", [byte_level, with_fallback])
def test_white_space_beside_tokens_that_take_it_is_exact(make: Any, tmp_path: Path) -> None:
    read_tokenizer(checkpoint(tmp_path, with_added(make(), AddedToken("<m>", lstrip=True, special=True))), SIZE)
