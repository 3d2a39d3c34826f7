"""WordPiece as GGUF files of other converters have it, against the library's own vocabulary."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from halfbyte.errors import FormatError
from halfbyte.text import build_tokenizer
from halfbyte.text.word_starts import file_spelling, library_spelling
from tests.text.tiny_vocabularies import BERT, WORDS, word_piece

OURS = build_tokenizer(word_piece())
TEXTS = (
    "The quick brown fox jumps over",
    "ÉTÉ, été!",
    "日本the",
    "quickly  jumpsly",
    "",
    "a" * 101,
    "zzz the",
    "a\0b\tc",
)


@pytest.mark.parametrize("text", TEXTS)
def test_ids_are_those_of_the_library_between_the_two_marks(text: str) -> None:
    theirs = Tokenizer(models.WordPiece({word: i for i, word in enumerate(BERT + WORDS)}, unk_token="[UNK]"))
    theirs.normalizer = normalizers.BertNormalizer()
    theirs.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    cls, sep = BERT.index("[CLS]"), BERT.index("[SEP]")
    assert OURS.encode(text) == [cls, *theirs.encode(text).ids, sep]
    assert OURS.encode(text, eos=False) == [cls, *theirs.encode(text).ids]


def test_a_vocabulary_with_capitals_keeps_them() -> None:
    cased = build_tokenizer(word_piece([*WORDS, "The"]))
    assert cased.encode("The the", bos=False, eos=False) == [cased.vocabulary.ids["▁The"], cased.vocabulary.ids["▁the"]]


def test_control_tokens_count_where_they_are_asked_for() -> None:
    mask = BERT.index("[MASK]")
    assert OURS.encode("the [MASK]!", special=True).count(mask) == 1
    assert OURS.encode("the [MASK]!").count(mask) == 0


def test_words_come_back_with_spaces_between() -> None:
    assert OURS.decode(OURS.encode("The quick fox jumps")) == "the quick fox jumps"


@pytest.mark.parametrize("piece", ["the", "##s", "[CLS]", "▁", "##▁", "##", "###", "[", "##[", "]", "[x", "x]"])
def test_pieces_survive_both_spellings(piece: str) -> None:
    assert library_spelling(file_spelling(piece)) == piece


def test_without_an_unknown_token_there_is_an_error() -> None:
    with pytest.raises(FormatError, match="unknown_token_id"):
        build_tokenizer(word_piece(unknown_token_id=None))
