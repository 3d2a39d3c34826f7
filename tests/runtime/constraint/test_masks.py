"""Masks against what the words themselves say.

Where the bytes that come are certain, but not the token, only the one that the tokenizer would take is allowed.
"""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.runtime.constraint import states
from halfbyte.runtime.constraint.compiler import Compiler
from halfbyte.runtime.constraint.mask import Mask
from halfbyte.runtime.constraint.wish import Constraint, read_constraint
from halfbyte.runtime.sampling.candidates import sort_best

CHOICES = ["then", "the thing", "th", "and", "an é", "\x00\n"]


@pytest.fixture
def compiler(llm):
    return Compiler(llm.tokenizer)


def spelt(llm, tokens):
    return b"".join(map(llm.tokenizer.token_bytes, tokens))


def expected(llm, said):
    """Tokens after which what was `said` is still the beginning of a choice, and the ends where it is one."""
    whole = [choice.encode() for choice in CHOICES]
    pieces = [llm.tokenizer.token_bytes(token) for token in range(llm.tokenizer.vocab_size)]
    go_on = [t for t, piece in enumerate(pieces) if piece and any(w.startswith(said + piece) for w in whole)]
    return sorted(go_on + (list(llm.tokenizer.eog_ids) if said in whole else []))


def test_every_state_allows_what_the_words_allow(llm, compiler):
    grammar = compiler.compile(read_constraint({"choices": CHOICES}))
    waiting, seen = [[]], set()
    while waiting:
        tokens = waiting.pop()
        matcher = grammar.matcher()
        for token in tokens:
            matcher.accept(token)
        allowed = expected(llm, spelt(llm, tokens))
        found = matcher.mask().ids.tolist()
        assert found
        assert found == allowed or set(found) < set(allowed), tokens
        if len({llm.tokenizer.token_bytes(token)[:1] for token in allowed}) > 1:
            assert {llm.tokenizer.token_bytes(token)[:1] for token in found} == {
                llm.tokenizer.token_bytes(token)[:1] for token in allowed
            }
        seen.add(spelt(llm, tokens))
        waiting += [[*tokens, token] for token in found if token not in llm.tokenizer.eog_ids]
    assert seen >= {choice.encode() for choice in CHOICES}


def test_forced_tokens_are_those_that_alone_are_allowed(llm, compiler):
    matcher = compiler.compile(read_constraint({"regex": "x(another thing)[0-9]"})).matcher()
    matcher.accept(llm.tokenize("x")[0])
    forced = matcher.forced()
    assert b"another thing".startswith(spelt(llm, forced))
    assert list(forced) == llm.tokenize("another thing")[: len(forced)]
    assert len(forced) > 3
    for token in forced:
        matcher.accept(token)
    assert not matcher.ended


def test_masks_are_found_once_by_grammar_and_state(llm, compiler, monkeypatch):
    grammar = compiler.compile(read_constraint({"regex": "[a-f]{2,40}"}))
    assert grammar is compiler.compile(Constraint("regex", "[a-f]{2,40}"))
    first = grammar.matcher()
    word = llm.tokenize("abc")
    masks = []
    for token in word:
        masks.append(first.mask())
        first.accept(token)
    monkeypatch.setattr(type(first), "_bits", lambda self: pytest.fail("was known"))
    second = grammar.matcher()
    for token, mask in zip(word, masks, strict=True):
        second.prepare()
        assert second.mask() is mask
        second.accept(token)


def test_a_mask_made_beside_is_the_same(llm, compiler):
    grammar = compiler.compile(read_constraint({"regex": "[ab]+c"}))
    beside, here = grammar.matcher(), compiler.compile(read_constraint({"regex": "[ab]+c()"})).matcher()
    for token in llm.tokenize("abba"):
        beside.prepare()
        twin = beside.fork()
        assert np.array_equal(beside.mask().ids, here.mask().ids)
        assert twin.mask() is beside.mask()
        beside.accept(token)
        here.accept(token)


def test_states_begin_anew_when_there_are_too_many(llm, compiler, monkeypatch):
    monkeypatch.setattr(states, "MOST_STATES", 5)
    monkeypatch.setattr(states, "MOST_MASKS", 2)
    grammar = compiler.compile(read_constraint({"choices": CHOICES}))
    for choice in CHOICES * 2:
        matcher, said = grammar.matcher(), b""
        for token in llm.tokenize(choice):
            assert token in matcher.mask().ids
            assert set(matcher.mask().ids.tolist()) <= set(expected(llm, said))
            matcher.accept(token)
            said += llm.tokenizer.token_bytes(token)


def test_few_grammars_are_kept(compiler, monkeypatch):
    monkeypatch.setattr("halfbyte.runtime.constraint.compiler.MOST_GRAMMARS", 2)
    one, two = (compiler.compile(Constraint("regex", text)) for text in "ab")
    assert compiler.compile(Constraint("regex", "a")) is one
    compiler.compile(Constraint("regex", "c"))
    assert compiler.compile(Constraint("regex", "b")) is not two


@pytest.mark.parametrize("size", [1, 31, 32, 33, 300])
def test_a_mask_says_the_same_in_each_form(size):
    wanted = np.random.default_rng(size).random(size) < 0.5
    bits = np.packbits(np.pad(wanted, (0, -size % 32)), bitorder="little").view(np.uint32)
    mask, row = Mask(bits), np.arange(size, dtype=np.float32)
    assert mask.ids.tolist() == np.flatnonzero(wanted).tolist()
    assert mask.allowed(np.arange(size + 40)[::-1]).tolist() == np.flatnonzero(wanted).tolist()[::-1]
    assert np.array_equal(mask.masked(row), np.where(wanted, row, -np.inf))
    longer = np.zeros(size + 40, np.float32)
    assert np.array_equal(mask.masked(longer), np.where(np.pad(wanted, (0, 40)), longer, -np.inf))


def test_what_a_mask_leaves_keeps_every_bit():
    wanted = np.arange(64) % 3 == 0
    mask = Mask(np.packbits(wanted, bitorder="little").view(np.uint32))
    row = np.tile(np.float32([-0.0, np.inf, -np.inf, 1e-45, np.nan, -3.5, 3e38]), 10)[:64]
    found = mask.masked(row)
    assert np.array_equal(found.view(np.uint32)[wanted], row.view(np.uint32)[wanted])
    assert not (found[~wanted] > -np.inf).any()
    assert np.shares_memory(found, row) is False


@pytest.mark.parametrize("count", [1, 7, 20, 90])
def test_the_first_of_the_best_are_those_of_the_row_without_the_others(count):
    random = np.random.default_rng(count)
    wanted = random.random(96) < 0.6
    mask = Mask(np.packbits(wanted, bitorder="little").view(np.uint32))
    row = random.integers(0, 9, 120).astype(np.float32)
    ids, logits = mask.first(sort_best(row, 120), count)
    expected = sort_best(mask.masked(row), count)
    assert ids == expected[0].tolist()
    assert logits == expected[1].tolist()
