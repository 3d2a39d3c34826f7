"""The toy model with a toy alphabet, as an `LLM`."""

from __future__ import annotations

from types import SimpleNamespace

from halfbyte.runtime.llm import LLM
from halfbyte.runtime.sampling.params import SamplingParams
from halfbyte.text.tool_styles import TOOL_STYLES
from tests.runtime.toy import VOCAB, toy_answer, toy_engine

LETTERS = [bytes([65 + i]) for i in range(VOCAB)]
LETTERS[7], LETTERS[8] = "é".encode()[:1], "é".encode()[1:]


class ToyTokenizer:
    """A letter a token, save that 7 and 8 are the halves of one."""

    bos_id = None
    vocabulary = SimpleNamespace(add_space_prefix=False)

    def encode(self, text, special=False, bos=None, literal=(), eos=None):
        return [LETTERS.index(letter.encode()) for letter in text]

    def decode(self, ids, special=False):
        return b"".join(LETTERS[i] for i in ids).decode(errors="replace")

    def token_bytes(self, token):
        return LETTERS[token]


class ToyTemplate:
    reasoning = None
    variables = frozenset({"messages", "shout"})
    tools = (TOOL_STYLES["hermes"], None)

    def render(self, messages, shout=False):
        text = "".join(message["content"] for message in messages)
        return text.upper() if shout else text


def toy_llm(executable=None, defaults=SamplingParams(), **options) -> LLM:  # noqa: B008
    engine = toy_engine(executable, **options)
    return LLM(engine, ToyTokenizer(), ToyTemplate(), defaults=defaults, spec=None, metadata={})


def pages_used(llm) -> int:
    return llm.info()["pages_used"]


ANSWER = toy_answer([1, 2], 12)
TEXT = ToyTokenizer().decode(ANSWER)
"""What "BC" is continued with."""
