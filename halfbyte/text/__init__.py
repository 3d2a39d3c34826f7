"""Text to token ids and back: tokenizers, chat templates, incremental detokenizing, stop strings."""

from .build import TOKENIZERS, build_tokenizer
from .detokenizer import Detokenizer
from .stop_strings import StopStrings
from .tokenizer import Tokenizer

__all__ = ["TOKENIZERS", "Detokenizer", "StopStrings", "Tokenizer", "build_tokenizer"]
