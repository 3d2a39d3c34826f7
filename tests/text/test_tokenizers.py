"""Text to ids and back, for both kinds of vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from halfbyte.errors import RequestError
from halfbyte.text import TOKENIZERS, Tokenizer, build_tokenizer
from tests.text.tiny_vocabularies import byte_bpe, sentence_piece, unigram

MAKERS: dict[str, Callable[..., dict[str, Any]]] = {"gpt2": byte_bpe, "llama": sentence_piece, "t5": unigram}
TINY = {name: build_tokenizer(make()) for name, make in MAKERS.items()}
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\u2581"), max_size=40)


def test_every_tokenizer_in_the_table_is_tested() -> None:
    # WordPiece gives no text back: it is tested by itself.
    assert {*TINY, "bert"} == set(TOKENIZERS)


@pytest.mark.parametrize("tokenizer", TINY.values(), ids=TINY)
@given(text=TEXTS)
def test_decode_gives_back_what_encode_took(tokenizer: Tokenizer, text: str) -> None:
    # Behind a user-defined token, as two spaces are one, comes another space that stays.
    assume("  " not in text or not tokenizer.vocabulary.add_space_prefix)
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("tokenizer", TINY.values(), ids=TINY)
@given(parts=st.lists(st.sampled_from(["<s>", "<|im_end|>", "<tool>", "the ", "\n", "<", "ß", " "]), max_size=8))
@settings(max_examples=50)
def test_special_parsing_gives_back_the_text_too(tokenizer: Tokenizer, parts: list[str]) -> None:
    text = "x" + "".join(parts)
    ids = tokenizer.encode(text, special=True, bos=False)
    if not tokenizer.vocabulary.add_space_prefix:
        assert tokenizer.decode(ids, special=True) == text
    assert ids.count(tokenizer.eos_id or 0) == 0
    assert [i for i in ids if tokenizer.token_text(i) == "<|im_end|>"] == [
        tokenizer.vocabulary.ids["<|im_end|>"] for part in parts if part == "<|im_end|>"
    ]


@pytest.mark.parametrize("tokenizer", TINY.values(), ids=TINY)
def test_control_tokens_in_plain_text_are_spelt_and_user_defined_ones_count(tokenizer: Tokenizer) -> None:
    vocabulary = tokenizer.vocabulary
    ids = tokenizer.encode("a<|im_end|>b</s><tool>c", bos=False)
    assert not {vocabulary.ids[text] for text in ("<|im_end|>", "</s>")} & set(ids)
    assert ids.count(vocabulary.ids["<tool>"]) == 1
    assert tokenizer.decode(ids).replace("> c", ">c") == "a<|im_end|>b</s><tool>c"


@pytest.mark.parametrize("tokenizer", TINY.values(), ids=TINY)
def test_the_begin_token_stands_once(tokenizer: Tokenizer) -> None:
    bos = tokenizer.bos_id
    assert tokenizer.encode("the", bos=True)[0] == bos
    assert tokenizer.encode("the", bos=False)[0] != bos
    assert tokenizer.encode("<s>the", special=True, bos=True).count(bos or 0) == 1
    assert tokenizer.encode("", bos=True) == [bos]
    assert tokenizer.encode("") == ([bos] if tokenizer.add_bos else [])


@pytest.mark.parametrize(("make", "expected"), [(byte_bpe, False), (sentence_piece, True)])
def test_add_bos_is_as_the_file_says_or_as_the_model_implies(make: Any, expected: bool) -> None:
    assert build_tokenizer(make()).add_bos is expected
    assert build_tokenizer(make(add_bos_token=not expected)).add_bos is not expected
    assert build_tokenizer(byte_bpe(pre="llama-bpe")).add_bos is True


@pytest.mark.parametrize("tokenizer", TINY.values(), ids=TINY)
def test_control_tokens_add_nothing_to_the_output_but_can_be_shown(tokenizer: Tokenizer) -> None:
    end = tokenizer.vocabulary.ids["<|im_end|>"]
    assert tokenizer.token_bytes(end) == b""
    assert tokenizer.token_text(end) == "<|im_end|>"
    assert tokenizer.decode([end]) == ""
    assert tokenizer.decode([end], special=True) == "<|im_end|>"


@pytest.mark.parametrize("tokenizer", TINY.values(), ids=TINY)
def test_nul_is_text_and_a_lone_surrogate_is_refused(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode(tokenizer.encode("a\0b")) == "a\0b"
    with pytest.raises(RequestError, match="U\\+D800, at character 1"):
        tokenizer.encode("a\ud800")


@pytest.mark.parametrize("tokenizer", TINY.values(), ids=TINY)
@pytest.mark.parametrize("outside", [-1, 10**6])
def test_an_id_outside_the_vocabulary_is_refused(tokenizer: Tokenizer, outside: int) -> None:
    with pytest.raises(RequestError, match=f"token id {outside} "):
        tokenizer.decode([outside])


def test_a_space_prefix_goes_before_text_at_the_start_and_after_special_tokens() -> None:
    prefixed = build_tokenizer(sentence_piece())
    plain = build_tokenizer(sentence_piece(add_space_prefix=False))
    end = plain.vocabulary.ids["<|im_end|>"]
    the = plain.encode(" the", bos=False)
    assert prefixed.encode("the", bos=False) == the
    assert prefixed.encode("<|im_end|>the", special=True, bos=False) == [end, *the]
    assert plain.encode("the", bos=False) != the
    assert prefixed.decode(the) == "the"
    assert prefixed.decode([end, *the]) == "the"
    assert prefixed.decode(the, continues=True) == plain.decode(the) == " the"


def test_pieces_typed_as_user_defined_keep_their_plain_spaces() -> None:
    tokenizer = build_tokenizer(sentence_piece(add_space_prefix=False))
    double = tokenizer.vocabulary.ids["  "]
    assert double in tokenizer.encode("the   end")
    assert tokenizer.token_bytes(double) == b"  "


def test_literal_positions_spell_no_control_token_and_leave_the_others() -> None:
    tokenizer = TINY["gpt2"]
    end, tool = tokenizer.vocabulary.ids["<|im_end|>"], tokenizer.vocabulary.ids["<tool>"]
    text = "<|im_end|><tool><|im_end|>"
    assert tokenizer.encode(text, special=True) == [end, tool, end]
    ids = tokenizer.encode(text, special=True, literal=[0, 9, 10, 15])
    assert ids[-2:] == [tool, end]
    assert end not in ids[:-1]
    assert tokenizer.decode(ids, special=True) == text


def test_ids_do_not_depend_on_what_holds_the_tokens() -> None:
    import numpy as np

    lists = byte_bpe()
    arrays = {
        **lists,
        "tokenizer.ggml.tokens": tuple(lists["tokenizer.ggml.tokens"]),
        "tokenizer.ggml.token_type": np.array(lists["tokenizer.ggml.token_type"], np.uint8),
    }
    text = "The third time, 12 of 345"
    assert build_tokenizer(arrays).encode(text) == build_tokenizer(lists).encode(text)
