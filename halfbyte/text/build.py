"""`TOKENIZERS`: from `tokenizer.ggml.model` to the module that builds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..errors import FormatError
from ..registry import Registry
from .rules import MODEL_RULES
from .tokenizer import Tokenizer

TOKENIZERS: Registry[Callable[[Mapping[str, object]], Tokenizer]] = Registry(
    "tokenizer model (tokenizer.ggml.model)",
    __package__,
    {
        "gpt2": ".byte_bpe:build",
        "llama": ".sentence_piece:build",
        "t5": ".unigram:build",
        "bert": ".word_piece:build",
    },
)


def build_tokenizer(metadata: Mapping[str, object]) -> Tokenizer:
    """The tokenizer a GGUF file describes.

    Raises `FormatError` where the metadata is damaged and `UnsupportedError` for a tokenizer or pre-tokenizer that is
    not in the tables.
    """
    model = metadata.get("tokenizer.ggml.model")
    if not isinstance(model, str):
        raise FormatError("tokenizer.ggml.model: is missing, so the file holds no tokenizer; convert it with one")
    if MODEL_RULES in metadata:
        # It needs the tokenizers library, which is slow to import.
        from .by_rules import tokenizer_by_rules

        return tokenizer_by_rules(metadata)
    return TOKENIZERS[model](metadata)
