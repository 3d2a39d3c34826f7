"""`Opening`: from what a caller says to streams of answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import ConfigError, RequestError, reject_unknown
from ..text import ChatTemplate, Detokenizer, StopStrings, Tokenizer, encode_chat
from .assembly import Assembly
from .async_stream import AsyncStream, Bell
from .constraint.compiler import Compiler
from .constraint.wish import NAMES as CONSTRAINTS
from .engine import Engine, TokenIds
from .options import CHAT_NAMES, ChatOptions, Options, Plan, check_template_kwargs, resolve
from .prompts import Messages, Prompt, token_ids
from .request import Request
from .sampling.params import SamplingParams
from .stream import Stream

MOST_SAMPLES = 1024


@dataclass(frozen=True)
class Asked:
    """Ids of a prompt, what is wanted of its answers, and whether an answer's text goes on from the prompt's."""

    ids: TokenIds
    plan: Plan
    continues: bool


class Opening:
    """Checks, encodes and submits; `defaults` hold where a caller says nothing. Any thread may use it."""

    def __init__(
        self, engine: Engine, tokenizer: Tokenizer, template: ChatTemplate, defaults: Callable[[], SamplingParams]
    ) -> None:
        self._engine = engine
        self._tokenizer = tokenizer
        self._template = template
        self._defaults = defaults
        self._compiler = Compiler(tokenizer)

    def prompt(self, prompt: Prompt, options: Mapping[str, Any]) -> Asked:
        """To go on from a text. Raises `ConfigError`, `RequestError`, `UnsupportedError`."""
        plan = self._plan(options)
        return Asked(self.ids(prompt), plan, continues=True)

    def chat(self, messages: Messages, options: ChatOptions) -> Asked:
        """To answer messages. Raises as `prompt`."""
        reject_unknown(options, CHAT_NAMES, "keyword")
        template_kwargs = check_template_kwargs(options.pop("chat_template_kwargs", None))
        plan = self._plan(options)
        return Asked(self.render(messages, template_kwargs), plan, continues=plan.grammar is not None)

    def ids(self, prompt: Prompt) -> TokenIds:
        """Ids of a prompt that may be a text."""
        return token_ids(self.encode(prompt) if isinstance(prompt, str) else prompt)

    def encode(self, text: str, special: bool = False, bos: bool | None = None) -> list[int]:
        """See `LLM.tokenize`."""
        if not isinstance(text, str):
            raise RequestError(f"the text to tokenize must be a string, not {repr(text)[:80]}")
        return self._tokenizer.encode(text, special=special, bos=bos, eos=False)

    def decode(self, ids: Iterable[int], special: bool = False) -> str:
        """See `LLM.detokenize`."""
        known = ids if isinstance(ids, (Sequence, np.ndarray)) or not isinstance(ids, Iterable) else list(ids)
        return self._tokenizer.decode(token_ids(known).tolist(), special=special)

    def render(self, messages: Messages, template_kwargs: Mapping[str, Any]) -> TokenIds:
        """Ids of the prompt that the chat template makes of messages."""
        return token_ids(encode_chat(self._tokenizer, self._template.render(messages, **template_kwargs)))

    def stream(self, asked: Asked) -> Stream:
        """One answer."""
        return self.streams(asked, 1)[0]

    def streams(self, asked: Asked, n: int) -> list[Stream]:
        """`n` answers; with a seed, each takes the next one. Raises as `Engine.submit_all`."""
        check_n(n)
        requests = self._engine.submit_all(asked.ids, [asked.plan.sample(number).ask() for number in range(n)])
        return [self._open(self._assembly(request, asked), asked.plan) for request in requests]

    def async_streams(self, asked: Asked, n: int) -> list[AsyncStream]:
        """`streams` for the event loop that runs."""
        check_n(n)
        bells = [Bell() for _ in range(n)]
        asks = [asked.plan.sample(number).ask(bell.ring) for number, bell in enumerate(bells)]
        requests = self._engine.submit_all(asked.ids, asks)
        return [
            AsyncStream(self._engine, self._assembly(request, asked), bell)
            for request, bell in zip(requests, bells, strict=True)
        ]

    def _plan(self, options: Mapping[str, Any]) -> Plan:
        return resolve(options, self._defaults(), self._engine.adapters, self._compiler)

    def _assembly(self, request: Request, asked: Asked) -> Assembly:
        pieces = Detokenizer(self._tokenizer, continues=asked.continues, spelled=asked.plan.spelled)
        return Assembly(request, pieces, StopStrings(asked.plan.stop), asked.plan.constraint)

    def _open(self, assembly: Assembly, plan: Plan) -> Stream:
        return Stream(self._engine, assembly, lambda parent, options: self._branch(parent, plan, options))

    def _branch(self, parent: Assembly, plan: Plan, options: Options) -> Assembly:
        pieces, stops = parent.branch()
        fresh = resolve(options, replace(plan.params, seed=None), self._engine.adapters, self._compiler)
        if "adapters" in options and fresh.adapters.seed != parent.request.sequence.seed:
            raise RequestError("a fork goes on with the adapters of its origin: ask for a stream of its own instead")
        if not any(name in options for name in CONSTRAINTS):
            fresh = replace(fresh, constraint=plan.constraint, grammar=plan.grammar)
        num_tokens = parent.request.sequence.num_prompt + parent.num_tokens
        request = self._engine.fork(parent.request, num_tokens, fresh.ask())
        stops = StopStrings(fresh.stop) if "stop" in options else stops
        return Assembly(request, pieces, stops, fresh.constraint)


def check_n(n: object) -> None:
    """Raise `ConfigError` unless so many answers may be asked for at once."""
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= MOST_SAMPLES:
        raise ConfigError(f"n must be a whole number from 1 to {MOST_SAMPLES}, not {n!r}", key="n")
