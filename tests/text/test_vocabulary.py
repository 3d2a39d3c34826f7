"""Damaged tokenizer metadata is named key by key; odd but sound metadata is read as it was meant."""

from __future__ import annotations

from typing import Any

import pytest

from halfbyte.errors import FormatError, UnsupportedError
from halfbyte.text import build_tokenizer
from tests.text.tiny_vocabularies import CONTROLS, NORMAL, USER, byte_bpe, sentence_piece

KEY = "tokenizer.ggml."


def changed(make: Any, name: str, change: Any) -> dict[str, Any]:
    metadata = make()
    metadata[KEY + name] = change(list(metadata[KEY + name]))
    return metadata


def replace(index: int, value: Any) -> Any:
    return lambda values: [*values[:index], value, *values[index + 1 :]]


DAMAGED = {
    "no tokens": (byte_bpe(tokens=None), "tokens: is missing"),
    "empty": (byte_bpe(tokens=[], token_type=[], merges=[]), "tokens: is empty"),
    "one text": (byte_bpe(tokens="abc"), "tokens: wants an array of strings"),
    "numbers": (byte_bpe(tokens=[1, 2]), "tokens: wants strings only"),
    "doubled": (changed(byte_bpe, "tokens", replace(9, "</s>")), "tokens: 1 texts occur twice, as '</s>'"),
    "no text": (changed(byte_bpe, "tokens", replace(9, "")), "tokens: token 9 has no text"),
    "few types": (changed(byte_bpe, "token_type", lambda t: t[:-1]), "token_type: has .* entries for"),
    "odd type": (changed(byte_bpe, "token_type", replace(9, 7)), "token_type: holds types other than"),
    "real types": (changed(byte_bpe, "token_type", lambda t: [0.5] * len(t)), "token_type: wants an array of numbers"),
    "no merges": (byte_bpe(merges=None), "merges: is missing"),
    "merge of one": (changed(byte_bpe, "merges", replace(3, "ab")), "merges: 1 are not two tokens .* 'ab'"),
    "merge of three": (changed(byte_bpe, "merges", replace(0, "a b c")), "merges: 1 are not two tokens"),
    "merges out of step": (changed(byte_bpe, "merges", lambda m: ["a", "a b c", *m[2:]]), "merges: 2 are not two"),
    "unknown merge": (
        changed(byte_bpe, "merges", replace(3, "xq qx")),
        "merges: 1 name tokens that are not .* 'xq qx'",
    ),
    "no bytes": (byte_bpe(tokens=["<s>", "</s>", "東京"], token_type=None, merges=[]), "no token for a single byte"),
    "bos": (byte_bpe(bos_token_id=9999), "bos_token_id: is 9999"),
    "eot": (byte_bpe(eot_token_id=-1), "eot_token_id: is -1"),
    "eos": (byte_bpe(eos_token_id=True), "eos_token_id: wants a token id"),
    "add_bos": (byte_bpe(add_bos_token="yes"), "add_bos_token: wants true or false"),
    "pre": (byte_bpe(pre=3), "pre: wants text"),
    "no scores": (sentence_piece(scores=None), "scores: is missing"),
    "few scores": (changed(sentence_piece, "scores", lambda s: s[:-2]), "scores: has .* entries for"),
    "NaN score": (
        changed(sentence_piece, "scores", replace(9, float("nan"))),
        "scores: holds values that are not finite",
    ),
    "byte name": (changed(sentence_piece, "tokens", replace(10, "<0xZZ>")), "token 10 is typed as a byte"),
    "lost byte": (changed(sentence_piece, "token_type", replace(10, NORMAL)), "tokens for 255 bytes only"),
    "no model": ({}, "tokenizer.ggml.model: is missing"),
}


@pytest.mark.parametrize(("metadata", "message"), DAMAGED.values(), ids=DAMAGED)
def test_damage_is_a_format_error_that_names_the_key(metadata: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        build_tokenizer(metadata)


def test_all_problems_are_told_together() -> None:
    with pytest.raises(FormatError) as caught:
        build_tokenizer(sentence_piece(bos_token_id=9999, scores=[1.0], add_space_prefix=5))
    assert [name in str(caught.value) for name in ("bos_token_id", "scores", "add_space_prefix")] == [True] * 3


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    with pytest.raises(UnsupportedError, match="did you mean 'gpt2'") as caught:
        build_tokenizer(byte_bpe(model="gpt"))
    assert set(caught.value.known) == {"gpt2", "llama", "t5", "bert"}
    with pytest.raises(UnsupportedError, match="did you mean 'qwen2'") as caught:
        build_tokenizer(byte_bpe(pre="qwen-2"))
    assert "llama-bpe" in caught.value.known


def test_a_vocabulary_without_bytes_uses_its_unknown_token() -> None:
    metadata = sentence_piece()
    kinds = [NORMAL if kind == 6 else kind for kind in metadata[KEY + "token_type"]]
    tokenizer = build_tokenizer({**metadata, KEY + "token_type": kinds})
    assert 0 in tokenizer.encode("☃")
    assert tokenizer.decode(tokenizer.encode("the ☃")) == "the "


def test_a_token_that_is_no_utf8_keeps_its_bytes_and_is_never_chosen() -> None:
    metadata = byte_bpe()
    word = metadata[KEY + "tokens"].index("Ġthe")
    odd = b"\xc4x".decode("utf-8", "surrogateescape")
    merges = [merge for merge in metadata[KEY + "merges"] if "Ġthe" not in (*merge.split(), merge.replace(" ", ""))]
    tokenizer = build_tokenizer(changed(byte_bpe, "tokens", replace(word, odd)) | {KEY + "merges": merges})
    assert tokenizer.token_bytes(word) == b"\xc4x"
    assert tokenizer.decode(tokenizer.encode("a the b")) == "a the b"
    assert word not in tokenizer.encode("a the b")


def test_merges_that_make_a_control_token_are_left_out() -> None:
    metadata = byte_bpe()
    tokens = metadata[KEY + "tokens"]
    word = tokens.index("Ġthe")
    assert word in build_tokenizer(metadata).encode(" the")
    tokenizer = build_tokenizer(changed(byte_bpe, "token_type", replace(word, CONTROLS)))
    assert word not in tokenizer.encode(" the")
    assert tokenizer.decode(tokenizer.encode(" the")) == " the"


@pytest.mark.parametrize("make", [byte_bpe, sentence_piece])
def test_ends_are_known_by_id_and_by_text(make: Any) -> None:
    tokenizer = build_tokenizer(make(eot_token_id=7))
    ids = tokenizer.vocabulary.ids
    assert tokenizer.eog_ids == {ids["</s>"], ids["<|im_end|>"], 7}


def test_a_sure_end_is_a_control_token_whatever_the_file_types_it() -> None:
    metadata = changed(byte_bpe, "token_type", replace(3, USER))
    tokenizer = build_tokenizer(metadata)
    assert 3 in tokenizer.eog_ids
    assert 3 not in tokenizer.encode("<|im_end|>")


def test_html_that_looks_like_an_end_is_none_where_the_file_says_so() -> None:
    tokenizer = build_tokenizer({**changed(byte_bpe, "token_type", replace(1, USER)), KEY + "eos_token_id": 3})
    assert tokenizer.eog_ids == {3}
    assert tokenizer.encode("</s>") == [1]


def test_between_the_parts_of_an_answer_end_does_not_end_it() -> None:
    swap = {"<s>": "<|end|>", "</s>": "<|return|>", "<|im_start|>": "<|call|>"}
    metadata = changed(byte_bpe, "tokens", lambda tokens: [swap.get(text, text) for text in tokens])
    assert build_tokenizer(metadata).eog_ids == {1, 2, 3}


def test_without_types_the_named_ids_are_control_tokens() -> None:
    tokenizer = build_tokenizer(byte_bpe(token_type=None))
    assert tokenizer.token_bytes(0) == tokenizer.token_bytes(1) == b""
    assert tokenizer.decode(tokenizer.encode("<s></s>")) == "<s></s>"
