"""Tokenizers of a few hundred tokens, trained here and now, in a folder as a checkpoint has them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from halfbyte.text.pre_tokenizers import PRE_TOKENIZERS
from halfbyte.tools.convert.tokenizer_proto import read_proto
from tests.text.tiny_vocabularies import CORPUS

TEXTS = [*CORPUS, "aaa  bbb   ccc\n\n\t\tddd 1234 ....", "Été, ÉTÉ, été; l'été d'or. Zażółć 你好世界 नमस्ते"] * 2
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace("{1,3}", "")
OWN = r"\p{Lu}?\p{Ll}+|\p{N}{1,2}|[^\p{L}\p{N}]"
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def byte_level(pattern: str | None = None, ignore_merges: bool = False, **level: Any) -> Tokenizer:
    """BPE over bytes; without a `pattern` words are GPT-2's."""
    made = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    last = pre_tokenizers.ByteLevel(**{"add_prefix_space": False, "use_regex": pattern is None, **level})
    split = [pre_tokenizers.Split(Regex(pattern), "isolated")] if pattern else []
    made.pre_tokenizer = pre_tokenizers.Sequence([*split, last])
    made.decoder = decoders.ByteLevel()
    _train(made, trainers.BpeTrainer, 420, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    made.add_special_tokens(SPECIAL)
    made.add_tokens(["<tool>"])
    return made


def with_fallback(prefix: str = "prepend") -> Tokenizer:
    """BPE that spells spaces and falls back to bytes, as Llama 2 ("prepend") and Gemma ("") have it, or "metaspace"."""
    made = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    strip = [decoders.Strip(" ", 1, 0)] if prefix else []
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *strip])
    if prefix in ("first", "always"):
        made.pre_tokenizer = pre_tokenizers.Metaspace("▁", prefix, split=False)
    else:
        first = [normalizers.Prepend("▁")] if prefix else []
        made.normalizer = normalizers.Sequence([*first, normalizers.Replace(" ", "▁")])
    if prefix == "":
        made.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    _train(made, trainers.BpeTrainer, 600, special_tokens=["<unk>", "<s>", "</s>", *BYTES], limit_alphabet=60)
    tree = json.loads(made.to_str())
    # The trainer knows nothing of bytes: they are tokens of the model and no special ones.
    tree["added_tokens"] = [token for token in tree["added_tokens"] if token["content"] not in BYTES]
    return Tokenizer.from_str(json.dumps(tree))


def unigram(**options: Any) -> Tokenizer:
    """Pieces by their scores, as T5 has them."""
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    made.pre_tokenizer = pre_tokenizers.Metaspace("▁", options.pop("prepend", "always"))
    made.decoder = decoders.Metaspace()
    _train(made, trainers.UnigramTrainer, 300, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>")
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return made


def charsmap() -> bytes:
    """The table of characters in a SentencePiece model."""
    model = dict(read_proto(pieces("unigram"), Path("made")))
    return dict(read_proto(model[3], Path("made")))[2]


def unigram_with_bytes() -> Tokenizer:
    """The same with bytes for characters that no piece has."""
    made = unigram()
    tree = json.loads(made.to_str())
    tree["model"]["vocab"] += [[text, 0.0] for text in BYTES]
    tree["model"]["byte_fallback"] = True
    made = Tokenizer.from_str(json.dumps(tree))
    made.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    return made


def word_piece(cased: bool = False) -> Tokenizer:
    """Words in pieces, as BERT has them."""
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=not cased)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    _train(made, trainers.WordPieceTrainer, 400, special_tokens=special)
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return made


@cache
def pieces(kind: str, **options: Any) -> bytes:
    """A SentencePiece model."""
    out = io.BytesIO()
    settings = {
        "vocab_size": 500 if kind == "bpe" else 330,
        "hard_vocab_limit": False,
        "byte_fallback": kind == "bpe",
        "character_coverage": 0.98,
        **options,
    }
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS), model_writer=out, model_type=kind, minloglevel=2, **settings
    )
    return out.getvalue()


TRAINED: dict[str, Callable[[], Tokenizer]] = {
    "gpt2": byte_level,
    "gpt2 with a space": lambda: byte_level(add_prefix_space=True),
    "llama3": lambda: byte_level(LLAMA3, ignore_merges=True),
    "qwen2": lambda: _with(byte_level(QWEN2), normalizer=normalizers.NFC()),
    "unknown pattern": lambda: byte_level(OWN),
    "digits": lambda: _with(
        byte_level(),
        pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False)]),
    ),
    "many splits": lambda: _with(
        byte_level(),
        pre_tokenizer=pre_tokenizers.Sequence(
            [
                *(
                    pre_tokenizers.Split(Regex(pattern), "isolated")
                    for pattern in PRE_TOKENIZERS["deepseek-v3"].patterns
                ),
                pre_tokenizers.ByteLevel(False, use_regex=False),
            ]
        ),
    ),
    "odd splits": lambda: _with(
        byte_level(),
        pre_tokenizer=pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(r"\s+|\S+"), "removed", invert=True),
                pre_tokenizers.Split(" ", "merged_with_next"),
                pre_tokenizers.Split(Regex("[aeiou]"), "contiguous"),
                pre_tokenizers.Punctuation("contiguous"),
                pre_tokenizers.UnicodeScripts(),
                pre_tokenizers.ByteLevel(False, use_regex=False),
            ]
        ),
    ),
    "byte-level normalizer": lambda: _with(
        byte_level(),
        normalizer=normalizers.ByteLevel(),
        pre_tokenizer=pre_tokenizers.Split(Regex("Ġ?[^Ġ]+|Ġ"), "isolated"),
    ),
    "roberta": lambda: _with(
        byte_level(), post_processor=processors.RobertaProcessing(("<|im_end|>", 422), ("<|im_start|>", 421))
    ),
    "llama2": with_fallback,
    "gemma": lambda: with_fallback(""),
    "metaspace first": lambda: with_fallback("first"),
    "metaspace always": lambda: with_fallback("always"),
    "unigram": unigram,
    "unigram with a table": lambda: _with(
        unigram(),
        normalizer=normalizers.Sequence(
            [
                normalizers.Precompiled(charsmap()),
                normalizers.Strip(left=False),
                normalizers.Replace(Regex(" {2,}"), "▁"),
            ]
        ),
    ),
    "unigram with bytes": unigram_with_bytes,
    "unigram first": lambda: unigram(prepend="first"),
    "uncased": word_piece,
    "cased": lambda: word_piece(cased=True),
}


def _with(made: Tokenizer, **parts: Any) -> Tokenizer:
    for name, part in parts.items():
        setattr(made, name, part)
    return made


def with_added(made: Tokenizer, *tokens: AddedToken) -> Tokenizer:
    """The same with more tokens."""
    made.add_tokens(list(tokens))
    return made


def checkpoint(folder: Path, made: Tokenizer | bytes, name: str | None = None, **files: Any) -> Path:
    """The folder with the tokenizer and further JSON files."""
    if isinstance(made, bytes):
        (folder / (name or "tokenizer.model")).write_bytes(made)
    else:
        made.save(str(folder / "tokenizer.json"))
    for stem, tree in files.items():
        (folder / f"{stem}.json").write_text(json.dumps(tree))
    return folder


def _train(made: Tokenizer, trainer: Any, size: int, **options: Any) -> None:
    made.train_from_iterator(TEXTS, trainer(vocab_size=size, show_progress=False, **options))
