"""Streaming gives the same text as decoding at once, and never half a character."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfbyte.text import Detokenizer, Tokenizer, build_tokenizer
from tests.text.tiny_vocabularies import byte_bpe, sentence_piece

TINY = {
    "gpt2": build_tokenizer(byte_bpe()),
    "llama": build_tokenizer(sentence_piece()),
    "llama without prefix": build_tokenizer(sentence_piece(add_space_prefix=False)),
}


@pytest.mark.parametrize("continues", [False, True])
@pytest.mark.parametrize("tokenizer", TINY.values(), ids=TINY)
@given(data=st.data())
def test_the_stream_joined_is_the_decoded_text(tokenizer: Tokenizer, continues: bool, data: Any) -> None:
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size - 1), max_size=30))
    stream = Detokenizer(tokenizer, continues)
    pieces = [stream.push(i) for i in ids]
    assert "".join(pieces) + stream.finish() == tokenizer.decode(ids, continues=continues)


@pytest.mark.parametrize("tokenizer", TINY.values(), ids=TINY)
@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\u2581\ufffd"), max_size=20))
def test_a_split_character_is_held_back_until_it_is_whole(tokenizer: Tokenizer, text: str) -> None:
    stream = Detokenizer(tokenizer)
    pieces = [stream.push(i) for i in tokenizer.encode(text)]
    assert "".join(pieces) == text
    assert stream.finish() == ""


@pytest.mark.parametrize("tokenizer", TINY.values(), ids=TINY)
def test_bytes_that_never_become_a_character_are_replaced_at_the_end(tokenizer: Tokenizer) -> None:
    half = next(i for i in range(tokenizer.vocab_size) if tokenizer.token_bytes(i) == b"\xf0")
    stream = Detokenizer(tokenizer)
    assert stream.push(half) == ""
    assert stream.finish() == "\ufffd"
