"""`LLM`: a loaded model, ready to be asked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, cast, overload

import numpy as np
from numpy.typing import NDArray

from ..errors import reject_unknown
from ..text import ChatTemplate, Tokenizer
from .adapters import AdapterChoice
from .async_stream import AsyncStream
from .cache.explain import CacheReport, explain
from .completion import Completion
from .constraint.answer import answer_of
from .engine import Engine, TokenIds
from .metrics.metrics import Metrics
from .metrics.tracing import Tracing
from .opening import Asked, Opening, check_n
from .options import AnswerOptions, ChatAnswerOptions, ChatOptions, Options, check_logprobs, check_template_kwargs
from .prompts import Messages, Prompt, Prompts, are_many, are_messages, token_ids
from .reader import KeepRows
from .reading import read_all
from .sampling.params import SamplingParams
from .score import Score, ScoreReader
from .sessions import Sessions
from .stream import Stream

if TYPE_CHECKING:
    from ..model.spec import ModelSpec


T = TypeVar("T")


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
        self._opening = Opening(engine, tokenizer, template, lambda: self.sampling_defaults)

    def tokenize(self, text: str, special: bool = False, bos: bool | None = None) -> list[int]:
        """Ids of `text`.

        `special`: control tokens spelt out in it count as such. `bos`: whether a begin token comes first, None for as
        the file says; no end token comes last. Raises `RequestError` for what is no text.
        """
        return self._opening.encode(text, special, bos)

    def detokenize(self, ids: Iterable[int], special: bool = False) -> str:
        """Text of `ids`; with `special` control tokens are spelt out, else left out. Raises `RequestError`."""
        return self._opening.decode(ids, special)

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
        texts = [self._opening.ids(one) for one in (prompt if are_many(prompt) else [cast("Prompt", prompt)])]
        readers = [ScoreReader(ids, logprobs, self._engine.select) for ids in texts]
        read_all(self._engine, list(zip(texts, readers, strict=True)), use)
        scores = [reader.score() for reader in readers]
        return scores if are_many(prompt) else scores[0]

    @overload
    def generate(self, prompt: Prompt, *, schema: type[T], **options: Unpack[AnswerOptions]) -> T: ...

    @overload
    def generate(self, prompt: Prompts, *, schema: type[T], **options: Unpack[AnswerOptions]) -> list[T]: ...

    @overload
    def generate(self, prompt: Prompt, **options: Unpack[Options]) -> Completion: ...

    @overload
    def generate(self, prompt: Prompts, **options: Unpack[Options]) -> list[Completion]: ...

    def generate(self, prompt: Prompt | Prompts, **options: Any) -> Any:
        """Continue `prompt` and wait for the whole answer; of several prompts all answers in the same order, computed
        together. An exception in the wait, Ctrl-C too, cancels what is left. With a class as `schema` what comes back
        is an object of it.

        Raises `ConfigError` for a misspelt or impossible option, `RequestError` for a prompt that cannot be served,
        `IncompleteAnswerError` for an object that was cut.
        """
        opening = self._opening
        asked = [opening.prompt(one, options) for one in (prompt if are_many(prompt) else [cast("Prompt", prompt)])]
        with ExitStack() as stack:
            streams = [stack.enter_context(opening.stream(one)) for one in asked]
            answers = [answer_of(s.collect(), one.plan.constraint) for s, one in zip(streams, asked, strict=True)]
        return answers if are_many(prompt) else answers[0]

    def samples(self, prompt: Prompt, n: int, **options: Unpack[Options]) -> list[Completion]:
        """`n` answers to one prompt, which is computed and kept once. With a `seed`, each takes the next one.

        Raises as `generate`.
        """
        check_n(n)
        with ExitStack() as stack:
            streams = self._opening.streams(self._opening.prompt(prompt, options), n)
            return [stream.collect() for stream in map(stack.enter_context, streams)]

    def stream(self, prompt: Prompt, **options: Unpack[Options]) -> Stream:
        """Continue `prompt`, piece by piece; closing the stream cancels. Raises as `generate`, at once."""
        return self._opening.stream(self._opening.prompt(prompt, options))

    @overload
    def chat(self, messages: Messages, *, schema: type[T], **options: Unpack[ChatAnswerOptions]) -> T: ...

    @overload
    def chat(self, messages: Messages, **options: Unpack[ChatOptions]) -> Completion: ...

    def chat(self, messages: Messages, **options: Any) -> Any:
        """The model's next message, as `generate`; its chat template turns `messages` into a prompt."""
        asked = self._opening.chat(messages, cast("ChatOptions", options))
        with self._opening.stream(asked) as stream:
            return answer_of(stream.collect(), asked.plan.constraint)

    def stream_chat(self, messages: Messages, **options: Unpack[ChatOptions]) -> Stream:
        """The model's next message, piece by piece, as `stream`."""
        return self._opening.stream(self._opening.chat(messages, options))

    @overload
    async def agenerate(self, prompt: Prompt, *, schema: type[T], **options: Unpack[AnswerOptions]) -> T: ...

    @overload
    async def agenerate(self, prompt: Prompt, **options: Unpack[Options]) -> Completion: ...

    async def agenerate(self, prompt: Prompt, **options: Any) -> Any:
        """`generate` of one prompt for asyncio; a cancelled task cancels the request."""
        return await self._acollect(self._opening.prompt(prompt, options))

    def astream(self, prompt: Prompt, **options: Unpack[Options]) -> AsyncStream:
        """`stream` for asyncio: `async for event in llm.astream(...)`."""
        return self._opening.async_streams(self._opening.prompt(prompt, options), 1)[0]

    @overload
    async def achat(self, messages: Messages, *, schema: type[T], **options: Unpack[ChatAnswerOptions]) -> T: ...

    @overload
    async def achat(self, messages: Messages, **options: Unpack[ChatOptions]) -> Completion: ...

    async def achat(self, messages: Messages, **options: Any) -> Any:
        """`chat` for asyncio; a cancelled task cancels the request."""
        return await self._acollect(self._opening.chat(messages, cast("ChatOptions", options)))

    def astream_chat(self, messages: Messages, **options: Unpack[ChatOptions]) -> AsyncStream:
        """`stream_chat` for asyncio."""
        return self._opening.async_streams(self._opening.chat(messages, options), 1)[0]

    async def astreams(self, prompt: Prompt, n: int, **options: Unpack[Options]) -> list[AsyncStream]:
        """`n` answers to one prompt for asyncio, each a stream; see `samples`. Tokenizing holds up no other task."""
        return self._opening.async_streams(await asyncio.to_thread(self._opening.prompt, prompt, options), n)

    async def astreams_chat(self, messages: Messages, n: int, **options: Unpack[ChatOptions]) -> list[AsyncStream]:
        """`n` next messages for asyncio, each a stream; see `samples`. Rendering holds up no other task."""
        return self._opening.async_streams(await asyncio.to_thread(self._opening.chat, messages, options), n)

    def render(self, messages: Messages, template_kwargs: Mapping[str, Any] | None = None) -> TokenIds:
        """The prompt that the chat template makes of `messages`. Raises `RequestError`, `UnsupportedError`."""
        return self._opening.render(messages, check_template_kwargs(template_kwargs))

    def explain_cache(
        self, prompt: Prompt | Messages, adapters: AdapterChoice | None = None, **template_kwargs: Any
    ) -> CacheReport:
        """How much of a prompt, or of what the chat template makes of messages, is cached now, and why not more."""
        seed = self._engine.adapters.choose(adapters).seed
        if are_messages(prompt):
            ids = self._opening.render(prompt, check_template_kwargs(template_kwargs))
        else:
            reject_unknown(template_kwargs, (), "keyword for a prompt without messages")
            ids = self._opening.ids(cast("Prompt", prompt))
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
        return Sessions(self._engine, use).save(path, None if prompt is None else self._opening.ids(prompt))

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

    async def _acollect(self, asked: Asked) -> Any:
        async with self._opening.async_streams(asked, 1)[0] as stream:
            return answer_of(await stream.collect(), asked.plan.constraint)
