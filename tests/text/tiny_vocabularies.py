"""Vocabularies of a few hundred tokens, trained here and now, as GGUF metadata."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

import sentencepiece
import tokenizers
from tokenizers import models, pre_tokenizers, trainers

CORPUS = [
    "The quick brown fox jumps over the lazy dog, and the dog doesn't mind at all.",
    "She said: it's the third time they've asked. Are you sure you'll come?",
    "def add(a, b):\n    return a + b\n\nprint(add(12, 345))\n",
    "Straße, café, naïve, 東京タワー, привет мир, 👍🏽 and ½ of it.",
] * 4
CONTROL = ["<s>", "</s>", "<|im_start|>", "<|im_end|>"]
NORMAL, UNKNOWN, CONTROLS, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


@cache
def _trained_bpe() -> tuple[tuple[str, ...], tuple[str, ...]]:
    trained = tokenizers.Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trained.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, show_progress=False)
    )
    ids = trained.get_vocab()
    tokens = sorted(ids, key=ids.__getitem__)
    # Every merged token has one way to be made; finding it again saves a look into the library's files.
    merges = []
    for token in tokens[256:]:
        halves = [(token[:i], token[i:]) for i in range(1, len(token)) if token[:i] in ids and token[i:] in ids]
        left, right = min(halves, key=lambda pair: max(ids[pair[0]], ids[pair[1]]))
        merges.append(f"{left} {right}")
    return tuple(tokens), tuple(merges)


def byte_bpe(**changes: Any) -> dict[str, Any]:
    """Metadata of a byte-level BPE: ids 0 to 3 control tokens, the last one user-defined."""
    plain, merges = _trained_bpe()
    tokens = [*CONTROL, *plain, "<tool>"]
    types = [CONTROLS] * len(CONTROL) + [NORMAL] * len(plain) + [USER]
    return _metadata("gpt2", tokens, types, {"merges": list(merges), "pre": "qwen2"}, changes)


@cache
def _trained_pieces() -> tuple[tuple[str, ...], tuple[float, ...], tuple[int, ...]]:
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=out, vocab_size=480, model_type="bpe", byte_fallback=True,
        character_coverage=0.98, normalization_rule_name="identity", remove_extra_whitespaces=False,
        control_symbols=CONTROL[2:], minloglevel=2,
    )  # fmt: skip
    return _pieces(out.getvalue())


def _pieces(model: bytes) -> tuple[tuple[str, ...], tuple[float, ...], tuple[int, ...]]:
    trained = sentencepiece.SentencePieceProcessor(model_proto=model)
    ids = range(len(trained))
    kinds = ((trained.is_unknown, UNKNOWN), (trained.is_control, CONTROLS), (trained.is_byte, BYTE))
    types = tuple(next((kind for is_kind, kind in kinds if is_kind(i)), NORMAL) for i in ids)
    return tuple(map(trained.id_to_piece, ids)), tuple(map(trained.get_score, ids)), types


def sentence_piece(**changes: Any) -> dict[str, Any]:
    """Metadata of a SentencePiece BPE: ids 0 to 4 are `<unk>` and control tokens, the last two user-defined."""
    tokens, scores, kinds = _trained_pieces()
    return _metadata(
        "llama",
        [*tokens, "  ", "<tool>"],
        [*kinds, USER, USER],
        {"scores": [*scores, 0.0, 0.0], "unknown_token_id": 0},
        changes,
    )


def _metadata(
    model: str, tokens: list[str], types: list[int], more: dict[str, Any], changes: dict[str, Any]
) -> dict[str, Any]:
    facts = {"model": model, "tokens": tokens, "token_type": types, **more}
    if "<s>" in tokens:
        facts |= {"bos_token_id": tokens.index("<s>"), "eos_token_id": tokens.index("</s>")}
    facts |= changes
    return {f"tokenizer.ggml.{name}": value for name, value in facts.items() if value is not None}


@cache
def _trained_unigram() -> tuple[tuple[str, ...], tuple[float, ...], tuple[int, ...]]:
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=out, vocab_size=340, model_type="unigram", byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, hard_vocab_limit=False,
        control_symbols=CONTROL[2:], minloglevel=2,
    )  # fmt: skip
    return _pieces(out.getvalue())


def unigram(**changes: Any) -> dict[str, Any]:
    """Metadata of a Unigram: ids 0 to 4 are `<unk>` and control tokens, the last one user-defined."""
    tokens, scores, kinds = _trained_unigram()
    facts = {"scores": [*scores, 0.0], "unknown_token_id": 0, "add_eos_token": False}
    return _metadata("t5", [*tokens, "<tool>"], [*kinds, USER], facts, changes)


BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["the", "quick", "brown", "fox", "jump", "##s", "over", "e", "##t", "##e", "!", ",", "日", "本", "##ly", "a"]


def word_piece(words: list[str] | None = None, **changes: Any) -> dict[str, Any]:
    """Metadata of a WordPiece vocabulary as GGUF files spell it: ids 0 to 4 are `BERT`."""
    spelt = [word.removeprefix("##") if word.startswith("##") else "▁" + word for word in words or WORDS]
    facts: dict[str, Any] = {f"{name}_token_id": i for i, name in enumerate(("padding", "unknown", "cls", "seperator"))}
    types = [CONTROLS, UNKNOWN, CONTROLS, CONTROLS, CONTROLS, *[NORMAL] * len(spelt)]
    return _metadata("bert", [*BERT, *spelt], types, facts, changes)
