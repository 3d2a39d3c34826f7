"""`Echo`: a prompt as a part of its answer, with how likely the model found it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..runtime.llm import LLM
from ..runtime.sampling.logprobs import TokenLogprobs
from .call import Server
from .prompts import Text


@dataclass(frozen=True)
class Echo:
    """The text of a prompt. Where probabilities are wanted, `count` is the number of its tokens and `tokens` has those
    of its text; the first may have nothing before it, and is its id alone.
    """

    text: str
    count: int
    tokens: Sequence[TokenLogprobs | int] = ()


async def echo_of(server: Server, llm: LLM, prompt: Text, logprobs: int | None, adapters: Any) -> Echo:
    """A prompt as it is repeated; with `logprobs`, the model reads it for them. Raises as `LLM.score`."""
    if logprobs is None:
        text = prompt if isinstance(prompt, str) else await asyncio.to_thread(llm.detokenize, prompt)
        return Echo(text, 0)
    score = await server.scores.run(lambda: llm.score(prompt, logprobs, adapters))
    tokens: list[TokenLogprobs | int] = [score.ids[0], *score.tokens]
    if not isinstance(prompt, str):
        return Echo(llm.detokenize(prompt), len(score.ids), tokens)
    # A begin token is the model's own affair where a text was given; it is what the first token follows.
    begins = score.ids[0] == llm.tokenizer.bos_id
    return Echo(prompt, len(score.ids), tokens[1:] if begins else tokens)
