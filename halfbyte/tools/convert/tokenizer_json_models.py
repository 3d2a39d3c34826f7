"""`MODELS`: the three models of a `tokenizer.json` that become GGUF vocabularies."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError, UnsupportedError
from ...formats import Typed
from ...text.charsmap import charsmap_problem
from ...text.rules import RULES
from ...text.stages import CHARSMAP, steps
from ...text.tokenizer import SPACE_MARK
from ...text.vocabulary import KEY, TokenType
from ...text.word_starts import CONTINUATION, file_spelling, library_spelling
from .tokenizer_pre_name import pre_name
from .tokenizer_source import Original, Token, TokenizerSource

_BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>")
_Stages = Mapping[str, Any]


def read_bpe(path: Path, original: Original, model: Mapping[str, Any], stages: _Stages) -> TokenizerSource:
    """Byte-level ones are "gpt2", those that spell spaces "llama"."""
    for option in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(option):
            raise UnsupportedError(f"{path}: a BPE with {option} {model[option]!r} is not supported")
    vocab = _vocab(path, model)
    fallback = bool(model.get("byte_fallback"))
    tokens = {i: Token(text, _type(text, fallback)) for text, i in vocab.items()}
    is_byte_level = any(step["type"] == "ByteLevel" for name in _STAGES for step in steps(name, stages[name]))
    merges = [_pair(path, merge) for merge in model.get("merges", [])]
    unknown_id = vocab.get(model.get("unk_token") or "")
    rules: dict[str, Any] = {
        "type": "BPE",
        "spelling": "bytes" if is_byte_level else _spelling(stages["decoder"]),
        "strips_any_space": any(step["type"] == "Strip" for step in _decoder_steps(stages["decoder"])),
        "unk": unknown_id is not None,
        "fuse_unk": bool(model.get("fuse_unk")),
        "byte_fallback": fallback,
        "ignore_merges": bool(model.get("ignore_merges")),
    }
    source = TokenizerSource(path, original, tokens, "gpt2" if is_byte_level else "llama", rules)
    source.unknown_id = unknown_id
    _keep_stages(source, stages)
    if is_byte_level and not any(" " in half or "\n" in half for pair in merges for half in pair):
        source.ggml_pre = pre_name(stages["normalizer"], stages["pre_tokenizer"], rules["ignore_merges"])
        source.facts[KEY + "merges"] = Typed([f"{a} {b}" for a, b in merges], "string")
        return source
    source.facts[RULES + "merge_ids"] = Typed(_merge_ids(path, merges, vocab).ravel(), "i32")
    source.has_scores = True
    source.add_space_prefix = not is_byte_level and _adds_space(stages)
    for rank, text in enumerate(a + b for a, b in reversed(merges)):
        # The first merge that makes a token is the one that counts.
        tokens[vocab[text]].score = float(rank - len(merges))
    return source


def read_unigram(path: Path, original: Original, model: Mapping[str, Any], stages: _Stages) -> TokenizerSource:
    """Pieces with scores: "t5"."""
    pieces, fallback = model["vocab"], bool(model.get("byte_fallback"))
    tokens = {i: Token(text, _type(text, fallback), float(score)) for i, (text, score) in enumerate(pieces)}
    rules = {
        "type": "Unigram",
        "spelling": _spelling(stages["decoder"]),
        "unk": model.get("unk_id") is not None,
        "byte_fallback": fallback,
    }
    source = TokenizerSource(path, original, tokens, "t5", rules, unknown_id=model.get("unk_id"), has_scores=True)
    source.add_space_prefix = _adds_space(stages)
    if source.unknown_id is not None:
        tokens[source.unknown_id].type = TokenType.UNKNOWN
    _keep_stages(source, stages)
    trims = any(step["type"] == "WhitespaceSplit" for step in steps("pre_tokenizer", stages["pre_tokenizer"]))
    trims |= any(step["type"] in ("Strip", "Replace") for step in steps("normalizer", stages["normalizer"]))
    source.facts[KEY + "remove_extra_whitespaces"] = trims
    return source


def read_word_piece(path: Path, original: Original, model: Mapping[str, Any], stages: _Stages) -> TokenizerSource:
    """Words in pieces: "bert"."""
    if model.get("continuing_subword_prefix", CONTINUATION) != CONTINUATION:
        raise UnsupportedError(f"{path}: WordPiece marks continuations by {model['continuing_subword_prefix']!r}")
    vocab = _vocab(path, model)
    twisted = [text for text in vocab if library_spelling(file_spelling(text)) != text]
    if twisted:
        raise UnsupportedError(f"{path}: the format cannot spell the piece {twisted[0]!r}")
    tokens = {i: Token(file_spelling(text)) for text, i in vocab.items()}
    unknown_id = vocab.get(model.get("unk_token", "[UNK]"))
    if unknown_id is None:
        raise FormatError(f"its unknown token {model.get('unk_token')!r} is not in its vocabulary", path=path)
    tokens[unknown_id].type = TokenType.UNKNOWN
    rules = {
        "type": "WordPiece",
        "max_input_chars_per_word": int(model.get("max_input_chars_per_word", 100)),
    }
    source = TokenizerSource(path, original, tokens, "bert", rules, unknown_id=unknown_id, add_space_prefix=True)
    _keep_stages(source, stages)
    return source


MODELS: Mapping[str, Callable[[Path, Original, Mapping[str, Any], _Stages], TokenizerSource]] = {
    "BPE": read_bpe,
    "Unigram": read_unigram,
    "WordPiece": read_word_piece,
}
_STAGES = ("normalizer", "pre_tokenizer")


def _vocab(path: Path, model: Mapping[str, Any]) -> dict[str, int]:
    vocab: dict[str, int] = model["vocab"]
    if len(set(vocab.values())) < len(vocab):
        seen: dict[int, str] = {}
        text, i = next((text, i) for text, i in vocab.items() if seen.setdefault(i, text) != text)
        raise FormatError(f"id {i} stands for both {seen[i]!r} and {text!r}", path=path)
    return vocab


def _pair(path: Path, merge: Any) -> tuple[str, str]:
    halves = merge.split(" ") if isinstance(merge, str) else merge
    if len(halves) != 2:
        raise FormatError(f"the merge {merge!r} does not name two tokens", path=path)
    return halves[0], halves[1]


def _merge_ids(path: Path, merges: list[tuple[str, str]], vocab: Mapping[str, int]) -> NDArray[np.int32]:
    unknown = next((pair for pair in merges if pair[0] not in vocab or pair[1] not in vocab), None)
    unknown = unknown or next((pair for pair in merges if "".join(pair) not in vocab), None)
    if unknown:
        raise FormatError(f"the merge of {unknown[0]!r} and {unknown[1]!r} names tokens that are not there", path=path)
    return np.array([(vocab[a], vocab[b]) for a, b in merges], np.int32).reshape(-1, 2)


def _type(text: str, fallback: bool) -> TokenType:
    return TokenType.BYTE if fallback and _BYTE.fullmatch(text) else TokenType.NORMAL


def _spelling(decoder: Any) -> str:
    found = list(_decoder_steps(decoder))
    marks = any(step["type"] == "Metaspace" for step in found)
    marks |= any(step["type"] == "Replace" and step["pattern"] == {"String": SPACE_MARK} for step in found)
    return "marks" if marks else "plain"


def _decoder_steps(decoder: Any) -> list[Any]:
    if decoder is None:
        return []
    if decoder["type"] != "Sequence":
        return [decoder]
    return [step for part in decoder["decoders"] for step in _decoder_steps(part)]


def _adds_space(stages: _Stages) -> bool:
    adds = any(step["type"] == "Prepend" for step in steps("normalizer", stages["normalizer"]))
    found = steps("pre_tokenizer", stages["pre_tokenizer"])
    return adds or any(step["type"] == "Metaspace" and step["prepend_scheme"] != "never" for step in found)


def _keep_stages(source: TokenizerSource, stages: _Stages) -> None:
    """Stages as they are, but for the table of characters, which has a key of its own."""
    source.normalizer, source.pre_tokenizer = stages["normalizer"], stages["pre_tokenizer"]
    tables = [step for step in steps("normalizer", source.normalizer) if step["type"] == "Precompiled"]
    if len({step["precompiled_charsmap"] for step in tables}) > 1:
        raise UnsupportedError(f"{source.path}: the normalizer has {len(tables)} tables of characters, not one")
    for step in tables:
        raw = b64decode(step["precompiled_charsmap"] or "")
        step["precompiled_charsmap"] = None
        problem = charsmap_problem(raw)
        if problem:
            raise FormatError(f"its precompiled_charsmap {problem}", path=source.path)
        source.facts[CHARSMAP] = Typed(np.frombuffer(raw, np.uint8), "u8")
