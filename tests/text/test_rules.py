"""Rules in a hostile file: a typed error, and no work without a bound."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from halfbyte.errors import FormatError, HalfbyteError, RequestError, UnsupportedError
from halfbyte.text import build_tokenizer
from halfbyte.text.charsmap import charsmap_problem
from tests.text.tiny_vocabularies import byte_bpe, unigram

RULES = "halfbyte.tokenizer."
SPLIT = {"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Isolated", "invert": False}
SPACES = {"type": "Replace", "pattern": {"String": "a"}, "content": "aaaa"}
LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True, "trim_offsets": False}


def ruled(make: Any = byte_bpe, **changes: Any) -> dict[str, Any]:
    """Metadata with rules; texts stand for themselves, other values for their JSON or arrays."""
    kind = {"type": "BPE", "spelling": "bytes"} if make is byte_bpe else {"type": "Unigram", "unk": True}
    facts = {"model": json.dumps(kind), "pre_tokenizer": json.dumps(LEVEL), **changes}
    plain = {key: json.dumps(value) if isinstance(value, dict) else value for key, value in facts.items()}
    return make() | {RULES + key: value for key, value in plain.items() if value is not None}


def test_sound_rules_are_followed() -> None:
    assert build_tokenizer(ruled()).encode("the dog") == build_tokenizer(byte_bpe(pre="gpt-2")).encode("the dog")
    lower = build_tokenizer(ruled(normalizer={"type": "Lowercase"}))
    assert lower.encode("THE Dog") == lower.encode("the dog")


DAMAGED: dict[str, tuple[dict[str, Any], str]] = {
    "model no text": ({"model": 3}, "model: wants text"),
    "model no JSON": ({"model": "{"}, "model: is no JSON"),
    "model a list": ({"model": "[]"}, "model: wants a JSON object"),
    "model deep": ({"model": "[" * 50_000}, "model: is no JSON"),
    "model long": ({"model": " " * 200_000}, "is 200000 characters long"),
    "model other": ({"model": {"type": "Words"}}, "'Words' with spelling"),
    "later option": ({"model": {"type": "BPE", "magic": True}}, "unknown option 'magic'; a later version"),
    "option type": ({"model": {"type": "BPE", "unk": 1}}, "unk wants a bool"),
    "option size": ({"model": {"type": "WordPiece", "max_input_chars_per_word": 1 << 40}}, "wants a int"),
    "no unknown": ({"model": {"type": "BPE", "unk": True}}, "unknown_token_id: is missing"),
    "step": ({"pre_tokenizer": {"type": "Magic"}}, "unknown step 'Magic'"),
    "no type": ({"pre_tokenizer": "[1]"}, "no object with a type"),
    "no list": ({"pre_tokenizer": {"type": "Sequence"}}, "no list of pretokenizers"),
    "steps": ({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [SPLIT] * 65}}, "has 65 steps"),
    "pattern": ({"pre_tokenizer": SPLIT | {"pattern": {"Regex": "(a"}}}, "Oniguruma error"),
    "behaviour": ({"pre_tokenizer": SPLIT | {"behavior": "Odd"}}, "cannot be built"),
    "growth": ({"normalizer": {"type": "Sequence", "normalizers": [SPACES] * 5}}, "more than 256 times as long"),
    "table": ({"normalizer": {"type": "Precompiled"}}, "cannot be built"),
    "added outside": ({"added_ids": [9999], "added_flags": [0]}, "added_ids: holds ids other than 0"),
    "added flags": ({"added_ids": [1, 2], "added_flags": [0]}, "added_flags: has 1 entries for 2"),
    "added reals": ({"added_ids": [0.5]}, "added_ids: wants an array of integers"),
    "prefix": ({"prefix_ids": [-1]}, "prefix_ids: holds ids"),
    "ends": ({"end_ids": "abc"}, "end_ids: wants an array"),
    "odd merges": ({"merge_ids": [5, 6, 7]}, "merge_ids: has 3 entries"),
    "merges": ({"merge_ids": [300, 301]}, "name tokens that are not in"),
    "scores": ({"scores": [1.0]}, "scores: has 1 entries"),
    "pieces": ({"model": {"type": "SentencePiece", "pieces": 3}}, "scores: is missing"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_named(name: str) -> None:
    changes, message = DAMAGED[name]
    with pytest.raises((FormatError, UnsupportedError), match=message):
        build_tokenizer(ruled(**changes))


def test_a_nest_of_sequences_is_an_error() -> None:
    nest = '{"type":"Sequence","pretokenizers":[' * 2000 + json.dumps(SPLIT) + "]}" * 2000
    with pytest.raises(HalfbyteError, match=r"nested too deeply|no JSON|cannot be built"):
        build_tokenizer(ruled(pre_tokenizer=nest))


def test_a_pattern_without_end_fails_the_request_alone() -> None:
    endless = {
        "type": "Sequence",
        "pretokenizers": [SPLIT | {"pattern": {"Regex": "(a+)+$"}}, LEVEL | {"use_regex": False}],
    }
    tokenizer = build_tokenizer(ruled(pre_tokenizer=endless))
    with pytest.raises(RequestError, match="gives up on the text"):
        tokenizer.encode("a" * 40 + "b")
    assert tokenizer.decode(tokenizer.encode("b a")) == "b a"


@pytest.mark.parametrize("pieces", [0, 10**6])
def test_a_wrong_number_of_pieces_is_bounded(pieces: int) -> None:
    metadata = ruled(unigram, model={"type": "SentencePiece", "unigram": True, "pieces": pieces}, pre_tokenizer=None)
    tokenizer = build_tokenizer(metadata)
    assert max(tokenizer.encode("the dog")) < tokenizer.vocab_size


def test_too_few_pieces_are_an_error() -> None:
    with pytest.raises(FormatError, match="SentencePiece cannot use this vocabulary"):
        build_tokenizer(ruled(unigram, model={"type": "SentencePiece", "unigram": True, "pieces": 3}))


def table(units: list[int], replacements: bytes) -> bytes:
    trie = np.array(units, "<u4").tobytes()
    return len(trie).to_bytes(4, "little") + trie + replacements


LEAF, WIDE = 1 << 8, 1 << 9
TABLES = {
    "short": (b"abc", "truncated"),
    "size": ((8).to_bytes(4, "little") + bytes(7), "truncated"),
    "no replacement": (table([0] * 256, b""), "truncated"),
    "no end": (table([0] * 256, b"a"), "has no end"),
    "long": (table([0] * 256, b"a" * 200 + b"\0"), "more than 128 bytes"),
    "outside": (table([1 << 18] + [0] * 255, b"a\0"), "leads outside"),
    "far outside": (table([WIDE | 1 << 30] + [0] * 255, b"a\0"), "leads outside"),
    "cut": (table([0] * 255, b"a\0"), "leads outside"),
    "value": (table([LEAF | 5 << 10, 0, 0, 0, 0, 1 << 31 | 7] + [0] * 250, b"a\0"), "replacements that are not there"),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_a_walk_would_leave_is_refused(name: str) -> None:
    raw, message = TABLES[name]
    assert message in (charsmap_problem(raw) or "")
    metadata = unigram() | {"tokenizer.ggml.precompiled_charsmap": np.frombuffer(raw, np.uint8)}
    with pytest.raises(FormatError, match=message):
        build_tokenizer(metadata)


def test_a_sound_table_is_followed() -> None:
    sound = table([LEAF | 5 << 10, 0, 0, 0, 0, 1 << 31] + [0] * 250, b"a\0")
    assert charsmap_problem(sound) is None
    assert charsmap_problem(b"") is None
