"""Where no ids are written down, every kind of tokenizer has to take back what it gave."""

from __future__ import annotations

import pytest

from halfbyte.runtime.golden.replay import compare_round_trips
from halfbyte.runtime.golden.texts import TEXTS
from halfbyte.text import build_tokenizer
from tests.text import tiny_vocabularies as tiny

KINDS = {"byte_bpe": tiny.byte_bpe, "sentence_piece": tiny.sentence_piece, "unigram": tiny.unigram}


@pytest.mark.parametrize("kind", KINDS)
def test_ids_become_a_text_that_becomes_the_same_ids(kind):
    findings = list(compare_round_trips(build_tokenizer(KINDS[kind]()), TEXTS))
    assert [finding for finding in findings if not finding.ok] == []
    assert len(findings) == len(TEXTS)
    assert any(finding.note.endswith(" tokens and back") for finding in findings)


def test_a_normalizer_may_change_the_text_once():
    tokenizer = build_tokenizer(tiny.word_piece())
    findings = list(compare_round_trips(tokenizer, ["hello", "the", "Unheard-of ☃"]))
    assert all(finding.ok for finding in findings)


def test_a_tokenizer_that_does_not_take_back_what_it_gave_fails(monkeypatch):
    tokenizer = build_tokenizer(tiny.byte_bpe())
    monkeypatch.setattr(tokenizer, "decode", lambda ids: "")
    (finding,) = compare_round_trips(tokenizer, ["Hello"])
    assert (finding.ok, finding.note.startswith("nothing instead of ")) == (False, True)


def test_without_a_tokenizer_there_is_nothing_to_compare():
    assert list(compare_round_trips(None, TEXTS)) == []
