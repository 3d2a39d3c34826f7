"""From a `tokenizer.json` through a GGUF file to the ids of the original."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, processors

from halfbyte.formats import open_gguf
from halfbyte.formats.writer import GGUFWriter
from halfbyte.text import Tokenizer as Ours
from halfbyte.text import build_tokenizer
from halfbyte.tools.convert.tokenizer import read_tokenizer
from halfbyte.tools.convert.tokenizer_battery import TEXTS
from tests.tools.convert.tiny_tokenizers import OWN, TRAINED, byte_level, checkpoint, with_added, with_fallback

KEY = "tokenizer.ggml."


def through_a_file(folder: Path, n_vocab: int) -> tuple[Ours, dict[str, Any]]:
    metadata = read_tokenizer(folder, n_vocab)
    with GGUFWriter(folder / "made.gguf", {"general.architecture": "none", **metadata}):
        pass
    file = open_gguf(folder / "made.gguf")
    return build_tokenizer(file.metadata), dict(file.metadata)


@pytest.mark.parametrize("name", TRAINED)
def test_ids_are_those_of_the_original(name: str, tmp_path: Path) -> None:
    original = TRAINED[name]()
    size = original.get_vocab_size()
    ours, metadata = through_a_file(checkpoint(tmp_path, original), size + 5)
    assert ours.vocab_size == size + 5
    assert metadata[KEY + "tokens"][size] == f"[PAD{size}]"
    for text in TEXTS:
        expected = original.encode(text, add_special_tokens=False).ids
        assert ours.encode(text, special=True, bos=False, eos=False) == expected, text
        if original.decode(expected) == text and metadata[KEY + "model"] != "bert":
            assert ours.decode(expected) == text
    for text in ("Hello, world", ""):
        assert ours.encode(text) == original.encode(text).ids


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("gpt2", "gpt-2"),
        ("llama3", "llama-bpe"),
        ("qwen2", "qwen2"),
        ("digits", "smollm"),
        ("unknown pattern", "default"),
    ],
)
def test_the_well_known_name_is_written_where_there_is_one(name: str, known: str, tmp_path: Path) -> None:
    original = TRAINED[name]()
    metadata = read_tokenizer(checkpoint(tmp_path, original), original.get_vocab_size())
    assert metadata[KEY + "pre"] == known
    assert (OWN.replace("\\", "\\\\") in str(metadata["halfbyte.tokenizer.pre_tokenizer"])) is (known == "default")


FLAGGED = (
    AddedToken("<mask>", lstrip=True, special=True),
    AddedToken("<left>", lstrip=True, rstrip=True, normalized=False),
    AddedToken("word", single_word=True, normalized=False),
    AddedToken("Norm", normalized=True),
    AddedToken("<É>", normalized=True, special=True),
    AddedToken("  ", normalized=False),
    AddedToken("the lazy", normalized=True, rstrip=True),
)
AROUND = (
    "a {0} b|{0}{0}|x{0}y| {0} |\n {0}\t{0}|{0}s|é{0}é|_{0}_|-{0}-|  {0}  {1}  |{0}\x1c{1}|\u0301{0}\u0301|{1}  {0}"
)


@pytest.mark.parametrize(
    "made",
    [
        byte_level,
        with_fallback,
        TRAINED["qwen2"],
        TRAINED["uncased"],
        TRAINED["unigram"],
        TRAINED["metaspace first"],
    ],
)
def test_added_tokens_meet_their_neighbours_as_they_did(made: Any, tmp_path: Path) -> None:
    original = with_added(made(), *FLAGGED)
    ours, _ = through_a_file(checkpoint(tmp_path, original), original.get_vocab_size())
    words = [token.content for token in FLAGGED]
    for i, word in enumerate(words):
        for form in AROUND.split("|"):
            text = form.format(word, words[i - 1])
            expected = original.encode(text, add_special_tokens=False).ids
            assert ours.encode(text, special=True, bos=False, eos=False) == expected, text


def test_text_that_people_wrote_spells_no_control_token_even_in_normal_form(tmp_path: Path) -> None:
    original = with_added(with_fallback(), AddedToken("<É>", normalized=True, special=True))
    ours, _ = through_a_file(checkpoint(tmp_path, original), original.get_vocab_size())
    control = original.token_to_id("<É>")
    # Llama's normal form puts a mark before the token, and looks for that.
    text = "<É> and x <É>"
    found = original.encode(text, add_special_tokens=False).ids
    assert found.count(control) == 2
    assert ours.encode(text, special=True, bos=False) == found
    assert ours.encode(text, special=True, bos=False, literal=[0]).count(control) == 1
    assert ours.encode(text, special=True, bos=False, literal=[0, 10]).count(control) == 0
    assert ours.encode(text, bos=False).count(control) == 0


def test_control_tokens_in_plain_text_are_spelt(tmp_path: Path) -> None:
    for i, name in enumerate(("llama3", "llama2", "unigram", "uncased")):
        (tmp_path / str(i)).mkdir()
        original = TRAINED[name]()
        ours, _ = through_a_file(checkpoint(tmp_path / str(i), original), original.get_vocab_size())
        texts = [token.content for token in original.get_added_tokens_decoder().values() if token.special]
        ids = ours.encode(" ".join(texts), bos=False, eos=False)
        assert not {original.token_to_id(text) for text in texts} - {ours.vocabulary.unknown_id} & set(ids), name


def test_a_template_of_several_marks_is_kept(tmp_path: Path) -> None:
    original = byte_level()
    marks = [(text, original.token_to_id(text)) for text in ("<|im_start|>", "<|im_end|>", "<|endoftext|>")]
    original.post_processor = processors.TemplateProcessing(
        single="<|im_start|> <|im_end|> $A <|endoftext|> <|im_end|>", special_tokens=marks
    )
    ours, _ = through_a_file(checkpoint(tmp_path, original), original.get_vocab_size())
    assert ours.encode("the") == original.encode("the").ids
    assert ours.encode("<|im_start|><|im_end|>the", special=True) == original.encode("the").ids
    assert ours.encode("the", bos=False, eos=False) == original.encode("the", add_special_tokens=False).ids


@pytest.mark.parametrize(
    ("name", "flags", "ends"),
    [
        ("llama3", {"add_bos_token": True}, (True, False)),
        ("llama3", {"add_bos_token": True, "add_eos_token": True}, (True, True)),
        ("llama3", {}, (False, False)),
        ("roberta", {"add_bos_token": False}, (True, True)),
    ],
)
def test_flags_of_the_configuration_count_where_the_tokenizer_is_silent(
    name: str, flags: dict[str, bool], ends: tuple[bool, bool], tmp_path: Path
) -> None:
    config = {"bos_token": "<|im_start|>", "eos_token": {"content": "<|im_end|>"}, **flags}
    ours, metadata = through_a_file(checkpoint(tmp_path, TRAINED[name](), tokenizer_config=config), 424)
    assert (metadata[KEY + "add_bos_token"], metadata[KEY + "add_eos_token"]) == ends
    plain = ours.encode("the", bos=False, eos=False)
    assert ours.encode("the") == [421] * ends[0] + plain + [422] * ends[1]
    assert ours.encode("the", bos=True, eos=True) == [421, *plain, 422]


def test_special_ids_come_from_texts_and_then_from_numbers(tmp_path: Path) -> None:
    config = {"eos_token": "<|im_end|>", "pad_token": None}
    more = {"eos_token_id": [420, 422, 423], "pad_token_id": 420}
    folder = checkpoint(
        tmp_path,
        byte_level(),
        tokenizer_config=config,
        generation_config=more,
        config={"text_config": {"bos_token_id": 421}},
    )
    (folder / "special_tokens_map.json").write_text('{"mask_token": {"content": "<tool>"}, "eos_token": "<tool>"}')
    ours, metadata = through_a_file(folder, 424)
    ids = {name: metadata.get(f"{KEY}{name}_token_id") for name in ("bos", "eos", "eot", "padding", "mask", "cls")}
    assert ids == {"bos": 421, "eos": 422, "eot": 420, "padding": 420, "mask": 423, "cls": None}
    assert ours.eog_ids == {420, 422, 423}
    assert ours.add_bos is False


def test_chat_templates_come_from_all_their_places(tmp_path: Path) -> None:
    listed = [{"name": "default", "template": "one"}, {"name": "tool_use", "template": "two"}]
    folder = checkpoint(tmp_path, byte_level(), tokenizer_config={"chat_template": listed})
    key = "tokenizer.chat_template"
    _, metadata = through_a_file(folder, 424)
    assert (metadata[key], metadata[key + ".tool_use"]) == ("one", "two")
    (folder / "chat_template.jinja").write_text("three\n")
    (folder / "additional_chat_templates").mkdir()
    (folder / "additional_chat_templates" / "rag.jinja").write_text("four")
    _, metadata = through_a_file(folder, 424)
    assert (metadata[key], metadata[key + ".rag"], list(metadata[key + "s"])) == ("three\n", "four", ["rag"])


@pytest.mark.parametrize(
    ("name", "level"), [("gpt2", None), ("llama2", None), ("qwen2", "INFO"), ("odd splits", "WARNING")]
)
def test_other_readers_are_reported_on(name: str, level: str | None, tmp_path: Path, caplog: Any) -> None:
    original = TRAINED[name]()
    with caplog.at_level("INFO", "halfbyte.convert"):
        read_tokenizer(checkpoint(tmp_path, original), original.get_vocab_size())
    assert [record.levelname for record in caplog.records] == ([level] if level else [])
