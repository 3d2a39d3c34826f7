"""Text to token ids and back: tokenizers, chat templates, incremental detokenizing, stop strings."""

from .build import TOKENIZERS, build_tokenizer
from .chat_template import ChatTemplate
from .detokenizer import Detokenizer
from .rendered import Rendered, encode_chat
from .stop_strings import StopStrings
from .tokenizer import Tokenizer

__all__ = [
    "TOKENIZERS",
    "ChatTemplate",
    "Detokenizer",
    "Rendered",
    "StopStrings",
    "Tokenizer",
    "build_tokenizer",
    "encode_chat",
]
