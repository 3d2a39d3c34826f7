"""`LLM`: a loaded model, ready to be asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack, cast, overload

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError, RequestError, reject_unknown
from ..text import ChatTemplate, Detokenizer, StopStrings, Tokenizer, encode_chat
from .adapters import AdapterChoice
from .assembly import Assembly
from .async_stream import AsyncStream, Bell
from .cache.explain import CacheReport, explain
from .completion import Completion
from .engine import Engine, TokenIds
from .metrics.metrics import Metrics
from .metrics.tracing import Tracing
from .options import CHAT_NAMES, ChatOptions, Options, Plan, check_logprobs, check_template_kwargs, resolve
from .prompts import Messages, Prompt, Prompts, are_many, are_messages, token_ids
from .reader import KeepRows
from .reading import read_all
from .sampling.params import SamplingParams
from .score import Score, ScoreReader
from .sessions import Sessions
from .stream import Stream

if TYPE_CHECKING:
    from ..model.spec import ModelSpec


MOST_SAMPLES = 1024


class LLM:
    """A loaded model; `halfbyte.load` makes one. Any thread may call any method, several at once.

    `context` is the most tokens of one prompt and answer together; `sampling_defaults` hold where a call says nothing;
    `adapters` are the names of those it has; `spec` is what the model is, `metadata` all that its file says.
    """

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        template: ChatTemplate,
        *,
        defaults: SamplingParams,
        spec: ModelSpec,
        metadata: Mapping[str, object],
    ) -> None:
        self.tokenizer = tokenizer
        self.template = template
        self.sampling_defaults = defaults
        self.context = engine.context
        self.adapters = tuple(adapter.name for adapter in engine.adapters.loaded)
        self.spec = spec
        self.metadata = metadata
        self._engine = engine

    def tokenize(self, text: str, special: bool = False, bos: bool | None = None) -> list[int]:
        """Ids of `text`.

        `special`: control tokens spelt out in it count as such. `bos`: whether a begin token comes first, None for as
        the file says; no end token comes last. Raises `RequestError` for what is no text.
        """
        if not isinstance(text, str):
            raise RequestError(f"the text to tokenize must be a string, not {repr(text)[:80]}")
        return self.tokenizer.encode(text, special=special, bos=bos, eos=False)

    def detokenize(self, ids: Iterable[int], special: bool = False) -> str:
        """Text of `ids`; with `special` control tokens are spelt out, else left out. Raises `RequestError`."""
        known = ids if isinstance(ids, (Sequence, np.ndarray)) or not isinstance(ids, Iterable) else list(ids)
        return self.tokenizer.decode(token_ids(known).tolist(), special=special)

    def logits(self, ids: Sequence[int] | TokenIds, adapters: AdapterChoice | None = None) -> NDArray[np.float32]:
        """f32[T, V]: what the model expects after each of `ids`; `adapters` as in `Options`.

        Raises `RequestError` for ids that are no tokens or do not fit the context, `ResourceError` where the result
        does not fit memory.
        """
        array = token_ids(ids)
        reader = KeepRows(len(array), self._engine.vocab_size)
        read_all(self._engine, [(array, reader)], self._engine.adapters.choose(adapters))
        return reader.rows

    @overload
    def score(self, prompt: Prompt, logprobs: int = 0, adapters: AdapterChoice | None = None) -> Score: ...

    @overload
    def score(self, prompt: Prompts, logprobs: int = 0, adapters: AdapterChoice | None = None) -> list[Score]: ...

    def score(
        self, prompt: Prompt | Prompts, logprobs: int = 0, adapters: AdapterChoice | None = None
    ) -> Score | list[Score]:
        """How likely the model finds a text, or each of several, token by token; `logprobs` alternatives are kept.

        Memory does not grow with the vocabulary. Raises `RequestError` for what does not fit the context.
        """
        check_logprobs(logprobs)
        use = self._engine.adapters.choose(adapters)
        texts = [self._ids(one) for one in (prompt if are_many(prompt) else [cast("Prompt", prompt)])]
        readers = [ScoreReader(ids, logprobs, self._engine.select) for ids in texts]
        read_all(self._engine, list(zip(texts, readers, strict=True)), use)
        scores = [reader.score() for reader in readers]
        return scores if are_many(prompt) else scores[0]

    @overload
    def generate(self, prompt: Prompt, **options: Unpack[Options]) -> Completion: ...

    @overload
    def generate(self, prompt: Prompts, **options: Unpack[Options]) -> list[Completion]: ...

    def generate(self, prompt: Prompt | Prompts, **options: Unpack[Options]) -> Completion | list[Completion]:
        """Continue `prompt` and wait for the whole answer; of several prompts all answers in the same order, computed
        together. An exception in the wait, Ctrl-C too, cancels what is left.

        Raises `ConfigError` for a misspelt or impossible option, `RequestError` for a prompt that cannot be served.
        """
        if not are_many(prompt):
            with self.stream(cast("Prompt", prompt), **options) as stream:
                return stream.collect()
        with ExitStack() as stack:
            streams = [stack.enter_context(self.stream(one, **options)) for one in prompt]
            return [stream.collect() for stream in streams]

    def samples(self, prompt: Prompt, n: int, **options: Unpack[Options]) -> list[Completion]:
        """`n` answers to one prompt, which is computed and kept once. With a `seed`, each takes the next one.

        Raises as `generate`.
        """
        _check_n(n)
        plan = self._plan(options)
        asks = [plan.sample(number).ask() for number in range(n)]
        requests = self._engine.submit_all(self._ids(prompt), asks)
        with ExitStack() as stack:
            streams = [
                stack.enter_context(self._open(Assembly(request, self._pieces(plan), StopStrings(plan.stop)), plan))
                for request in requests
            ]
            return [stream.collect() for stream in streams]

    def stream(self, prompt: Prompt, **options: Unpack[Options]) -> Stream:
        """Continue `prompt`, piece by piece; closing the stream cancels. Raises as `generate`, at once."""
        plan = self._plan(options)
        return self._start(self._ids(prompt), plan, self._pieces(plan))

    def chat(self, messages: Messages, **options: Unpack[ChatOptions]) -> Completion:
        """The model's next message, as `generate`; its chat template turns `messages` into a prompt."""
        with self.stream_chat(messages, **options) as stream:
            return stream.collect()

    def stream_chat(self, messages: Messages, **options: Unpack[ChatOptions]) -> Stream:
        """The model's next message, piece by piece, as `stream`."""
        ids, plan = self._chat(messages, options)
        return self._start(ids, plan, Detokenizer(self.tokenizer, spelled=plan.spelled))

    async def agenerate(self, prompt: Prompt, **options: Unpack[Options]) -> Completion:
        """`generate` of one prompt for asyncio; a cancelled task cancels the request."""
        async with self.astream(prompt, **options) as stream:
            return await stream.collect()

    def astream(self, prompt: Prompt, **options: Unpack[Options]) -> AsyncStream:
        """`stream` for asyncio: `async for event in llm.astream(...)`."""
        plan = self._plan(options)
        return self._astart(self._ids(prompt), plan, self._pieces(plan))

    async def achat(self, messages: Messages, **options: Unpack[ChatOptions]) -> Completion:
        """`chat` for asyncio; a cancelled task cancels the request."""
        async with self.astream_chat(messages, **options) as stream:
            return await stream.collect()

    def astream_chat(self, messages: Messages, **options: Unpack[ChatOptions]) -> AsyncStream:
        """`stream_chat` for asyncio."""
        ids, plan = self._chat(messages, options)
        return self._astart(ids, plan, Detokenizer(self.tokenizer, spelled=plan.spelled))

    async def astreams(self, prompt: Prompt, n: int, **options: Unpack[Options]) -> list[AsyncStream]:
        """`n` answers to one prompt for asyncio, each a stream; see `samples`. Tokenizing holds up no other task."""
        ids, plan = await asyncio.to_thread(lambda: (self._ids(prompt), self._plan(options)))
        return self._astart_all(ids, plan, n, lambda: self._pieces(plan))

    async def astreams_chat(self, messages: Messages, n: int, **options: Unpack[ChatOptions]) -> list[AsyncStream]:
        """`n` next messages for asyncio, each a stream; see `samples`. Rendering holds up no other task."""
        ids, plan = await asyncio.to_thread(self._chat, messages, options)
        return self._astart_all(ids, plan, n, lambda: Detokenizer(self.tokenizer, spelled=plan.spelled))

    def render(self, messages: Messages, template_kwargs: Mapping[str, Any] | None = None) -> TokenIds:
        """The prompt that the chat template makes of `messages`. Raises `RequestError`, `UnsupportedError`."""
        return self._render(messages, check_template_kwargs(template_kwargs))

    def explain_cache(
        self, prompt: Prompt | Messages, adapters: AdapterChoice | None = None, **template_kwargs: Any
    ) -> CacheReport:
        """How much of a prompt, or of what the chat template makes of messages, is cached now, and why not more."""
        seed = self._engine.adapters.choose(adapters).seed
        if are_messages(prompt):
            ids = self._render(prompt, check_template_kwargs(template_kwargs))
        else:
            reject_unknown(template_kwargs, (), "keyword for a prompt without messages")
            ids = self._ids(cast("Prompt", prompt))
        self._engine.check_ids(ids)
        plain, page_len = ids.astype(np.int32), self._engine.page_len

        def spell(token: int) -> str:
            return self.detokenize([token], special=True)

        return self._engine.call(lambda loop: explain(loop.scheduler.pool, plain, page_len, spell, seed))

    def save_session(
        self, path: str | PathLike[str], prompt: Prompt | None = None, adapters: AdapterChoice | None = None
    ) -> int:
        """Write the cached beginnings of all texts, or of `prompt` alone, to a file; the number of their tokens.

        It holds what was computed with the same `adapters`, which are as in `Options`.

        `load_session` then brings them back, in another process too, and what begins so skips its computing. Raises
        `ConfigError` for a path that cannot be written, `ResourceError` for a full disk; nothing is left behind then.
        """
        use = self._engine.adapters.choose(adapters)
        return Sessions(self._engine, use).save(path, None if prompt is None else self._ids(prompt))

    def load_session(self, path: str | PathLike[str], adapters: AdapterChoice | None = None) -> int:
        """Bring back what `save_session` wrote; the number of tokens. Where it raises, everything is as it was.

        Raises `ConfigError` where there is no such file and for one of another model, KV type, instruction set or
        choice of adapters, `FormatError` for a damaged one, `ResourceError` where the KV pages are not enough.
        """
        return Sessions(self._engine, self._engine.adapters.choose(adapters)).load(path)

    def info(self) -> dict[str, str | int]:
        """Facts for people: those of the executable, the context, adapters, and pages free, cached, used."""
        facts = {**self._engine.facts, "context": self.context, **asdict(self._engine.status())}
        adapters = self._engine.adapters
        return facts | {"adapters": adapters.by_default.text or "none"} if adapters.loaded else facts

    def metrics(self) -> Metrics:
        """Queues, pages, rates, waits, and what became of requests; takes some 100 us and holds up nothing."""
        return self._engine.metrics()

    def trace(self, path: str | PathLike[str]) -> Tracing:
        """`with llm.trace("trace.json"):` records when what ran, for chrome://tracing and ui.perfetto.dev.

        The file appears at the end of the block: each step of the engine by phase, and within it each op of the model
        by thread, for a thousand steps or a million ops, whatever comes first. A step of a small model takes some 5 %
        longer meanwhile, and the end of the block a second or two.

        Raises `ConfigError` where the file cannot be written or a trace is being recorded already.
        """
        return Tracing(self._engine, path)

    def close(self) -> None:
        """End what is under way with `CancelledError` and free memory and threads; may be called twice."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _plan(self, options: Mapping[str, Any]) -> Plan:
        return resolve(options, self.sampling_defaults, self._engine.adapters)

    def _ids(self, prompt: Prompt) -> TokenIds:
        return token_ids(self.tokenize(prompt) if isinstance(prompt, str) else prompt)

    def _pieces(self, plan: Plan) -> Detokenizer:
        return Detokenizer(self.tokenizer, continues=True, spelled=plan.spelled)

    def _chat(self, messages: Messages, options: ChatOptions) -> tuple[TokenIds, Plan]:
        reject_unknown(options, CHAT_NAMES, "keyword")
        template_kwargs = check_template_kwargs(options.pop("chat_template_kwargs", None))
        plan = self._plan(options)
        return self._render(messages, template_kwargs), plan

    def _render(self, messages: Messages, template_kwargs: Mapping[str, Any]) -> TokenIds:
        return token_ids(encode_chat(self.tokenizer, self.template.render(messages, **template_kwargs)))

    def _start(self, ids: TokenIds, plan: Plan, pieces: Detokenizer) -> Stream:
        stops = StopStrings(plan.stop)
        return self._open(Assembly(self._engine.submit(ids, plan.ask()), pieces, stops), plan)

    def _open(self, assembly: Assembly, plan: Plan) -> Stream:
        return Stream(self._engine, assembly, lambda parent, options: self._branch(parent, plan, options))

    def _branch(self, parent: Assembly, plan: Plan, options: Options) -> Assembly:
        pieces, stops = parent.branch()
        fresh = resolve(options, replace(plan.params, seed=None), self._engine.adapters)
        if "adapters" in options and fresh.adapters.seed != parent.request.sequence.seed:
            raise RequestError("a fork goes on with the adapters of its origin: ask for a stream of its own instead")
        num_tokens = parent.request.sequence.num_prompt + parent.num_tokens
        request = self._engine.fork(parent.request, num_tokens, fresh.ask())
        return Assembly(request, pieces, StopStrings(fresh.stop) if "stop" in options else stops)

    def _astart(self, ids: TokenIds, plan: Plan, pieces: Detokenizer) -> AsyncStream:
        return self._astart_all(ids, plan, 1, lambda: pieces)[0]

    def _astart_all(self, ids: TokenIds, plan: Plan, n: int, pieces: Callable[[], Detokenizer]) -> list[AsyncStream]:
        _check_n(n)
        bells, texts = [Bell() for _ in range(n)], [pieces() for _ in range(n)]
        asks = [plan.sample(number).ask(bell.ring) for number, bell in enumerate(bells)]
        requests = self._engine.submit_all(ids, asks)
        return [
            AsyncStream(self._engine, Assembly(request, text, StopStrings(plan.stop)), bell)
            for request, text, bell in zip(requests, texts, bells, strict=True)
        ]


def _check_n(n: object) -> None:
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= MOST_SAMPLES:
        raise ConfigError(f"n must be a whole number from 1 to {MOST_SAMPLES}, not {n!r}", key="n")
