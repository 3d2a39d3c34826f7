"""`read_tokenizer`: a checkpoint's tokenizer as GGUF metadata, proven to give the same ids."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ...errors import FormatError
from ...formats import Typed
from ...text.rules import MODEL_RULES, RULES
from ...text.vocabulary import KEY, TokenType
from . import tokenizer_sentencepiece
from .tokenizer_chat import chat_templates
from .tokenizer_files import TokenizerFiles
from .tokenizer_json import NAME, read_json
from .tokenizer_marks import marks_by_flags
from .tokenizer_parity import check_parity, report_other_readers
from .tokenizer_sentencepiece import read_sentencepiece
from .tokenizer_source import Token, TokenizerSource
from .tokenizer_special import SpecialIds, special_ids

_log = logging.getLogger("halfbyte.convert")


def read_tokenizer(folder: Path, n_vocab: int) -> dict[str, object]:
    """Metadata of the tokenizer in a checkpoint's folder, for a model with `n_vocab` rows of embeddings.

    Raises `FormatError` for files that are missing or damaged, and `UnsupportedError`, with the first text whose ids
    would differ, for a tokenizer that cannot be expressed exactly.
    """
    files = TokenizerFiles(folder)
    try:
        source = _read_source(files)
        templates = chat_templates(files)
        _fit(source, n_vocab, templates)
        metadata = _metadata(source, files, n_vocab)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        # Files of others are large and mostly right; what is not where it belongs shows here.
        path = files.first([NAME, *tokenizer_sentencepiece.NAMES])
        raise FormatError(f"is damaged: {type(error).__name__} {error}; fetch it again", path=path) from error
    check_parity(source, metadata)
    report_other_readers(source, metadata)
    return metadata | templates


def _read_source(files: TokenizerFiles) -> TokenizerSource:
    if files.first([NAME]):
        return read_json(files)
    path = files.first(tokenizer_sentencepiece.NAMES)
    if path is None:
        wanted = " or ".join([NAME, *tokenizer_sentencepiece.NAMES])
        raise FormatError(f"the folder holds no tokenizer: looked for {wanted}", path=files.folder)
    return read_sentencepiece(files, path)


def _fit(source: TokenizerSource, n_vocab: int, templates: Mapping[str, object]) -> None:
    """Leave out added tokens that the model has no row for, as some checkpoints have them, and fill holes."""
    tokens = source.tokens
    outside = {i: token for i, token in sorted(tokens.items()) if not 0 <= i < n_vocab}
    chats = " ".join(text for text in templates.values() if isinstance(text, str))
    needed = [i for i, token in outside.items() if token.added is None or token.text in chats or i < 0]
    if needed:
        raise FormatError(
            f"has tokens up to id {max(outside)}, as {outside[needed[0]].text!r}, and the model has {n_vocab} rows of "
            "embeddings; is this the tokenizer of this checkpoint?",
            path=source.path,
        )
    for i, token in outside.items():
        _log.warning("%s: token %d, %r, is left out: the model has %d rows", source.path, i, token.text, n_vocab)
        del tokens[i]
    taken = {token.text for token in tokens.values()}
    for i in range(n_vocab):
        if i not in tokens or not tokens[i].text:
            pad = f"[PAD{i}]"
            tokens[i] = Token(pad if pad not in taken else f"[UNUSED PAD{i}]", TokenType.UNUSED)
    if len({token.text for token in tokens.values()}) < n_vocab:
        seen: dict[str, int] = {}
        i = next(i for i in range(n_vocab) if seen.setdefault(tokens[i].text, i) != i)
        text = tokens[i].text
        raise FormatError(f"ids {seen[text]} and {i} are spelt alike, as {text!r}", path=source.path)


def _metadata(source: TokenizerSource, files: TokenizerFiles, n_vocab: int) -> dict[str, object]:
    ordered = [source.tokens[i] for i in range(n_vocab)]
    special = special_ids(files, {token.text: i for i, token in enumerate(ordered)}, n_vocab)
    end = special.ends[0] if special.ends else None
    if source.is_silent:
        source.prefix, source.suffix = marks_by_flags(files, (source.prefix, source.suffix), special.bos, end)
    metadata: dict[str, object] = {
        KEY + "model": source.ggml_model,
        KEY + "pre": source.ggml_pre,
        KEY + "tokens": Typed([token.text for token in ordered], "string"),
        KEY + "token_type": Typed(np.array([token.type for token in ordered], np.int32), "i32"),
    }
    if source.has_scores:
        scores = np.array([token.score for token in ordered])
        metadata[KEY + "scores"] = Typed(scores.astype(np.float32), "f32")
        if (scores.astype(np.float32) != scores).any():
            metadata[RULES + "scores"] = Typed(scores, "f64")
    metadata |= _ids_and_flags(source, special)
    metadata |= source.facts
    return metadata | _rules(source, ordered, special)


def _ids_and_flags(source: TokenizerSource, special: SpecialIds) -> dict[str, object]:
    marks = (source.prefix, source.suffix)
    bos = special.bos if special.bos is not None else (special.cls if special.cls is not None else None)
    # Readers without our rules know one mark at each end.
    bos = marks[0][0] if len(marks[0]) == 1 else bos
    by_sep = bool(marks[1]) and marks[1][0] == special.sep and source.ggml_model == "bert"
    eos = special.ends[0] if special.ends else (special.sep if by_sep else None)
    named = {
        "bos": bos,
        "eos": eos,
        "eot": special.ends[1] if len(special.ends) > 1 else None,
        "unknown": source.unknown_id,
        "seperator": special.sep,
        "padding": special.pad,
        "cls": special.cls,
        "mask": special.mask,
    }
    metadata: dict[str, object] = {
        f"{KEY}{name}_token_id": Typed(i, "u32") for name, i in named.items() if i is not None
    }
    metadata[KEY + "add_bos_token"] = bool(marks[0])
    metadata[KEY + "add_eos_token"] = bool(marks[1])
    if source.ggml_model == "bert":
        metadata[KEY + "add_sep_token"] = by_sep
    metadata[KEY + "add_space_prefix"] = source.add_space_prefix
    return metadata


def _rules(source: TokenizerSource, ordered: list[Token], special: SpecialIds) -> dict[str, object]:
    rules: dict[str, object] = {MODEL_RULES: json.dumps(source.model)}
    for name, stage in (("normalizer", source.normalizer), ("pre_tokenizer", source.pre_tokenizer)):
        if stage is not None:
            rules[RULES + name] = json.dumps(stage, ensure_ascii=False)
    added = [(i, token.added) for i, token in enumerate(ordered) if token.added is not None]
    lists = {"added_ids": [i for i, _ in added], "prefix_ids": source.prefix, "suffix_ids": source.suffix}
    lists["end_ids"] = list(special.ends)
    rules |= {RULES + name: Typed(ids, "i32") for name, ids in lists.items() if ids}
    if added:
        rules[RULES + "added_flags"] = Typed(np.array([flags or 0 for _, flags in added], np.uint8), "u8")
    return rules
