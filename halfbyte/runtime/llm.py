"""`LLM`: a loaded model, ready to be asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from ..errors import RequestError, reject_unknown
from ..text import ChatTemplate, Detokenizer, StopStrings, Tokenizer, encode_chat
from .completion import Completion
from .engine import Engine, TokenIds
from .options import CHAT_NAMES, ChatOptions, Options, Plan, check_template_kwargs, resolve
from .sampling.params import SamplingParams
from .stream import Stream

if TYPE_CHECKING:
    from ..model.spec import ModelSpec

Prompt = str | Sequence[int] | TokenIds
"""Text, whose control tokens are plain text, or token ids."""

Messages = Sequence[Mapping[str, Any]]
"""`{"role": "user", "content": "..."}` and so on, oldest first."""


class LLM:
    """A loaded model; `halfbyte.load` makes one. Any thread may call any method, several at once.

    `context` is the most tokens of one prompt and answer together; `sampling_defaults` hold where a call says nothing;
    `spec` is what the model is, `metadata` all that its file says.
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
        self.spec = spec
        self.metadata = metadata
        self._engine = engine

    def tokenize(self, text: str, special: bool = False, bos: bool | None = None) -> list[int]:
        """Ids of `text`.

        `special`: control tokens spelt out in it count as such. `bos`: whether a begin token comes first, None for as
        the file says. Raises `RequestError` for what is no text.
        """
        if not isinstance(text, str):
            raise RequestError(f"the text to tokenize must be a string, not {repr(text)[:80]}")
        return self.tokenizer.encode(text, special=special, bos=bos)

    def detokenize(self, ids: Iterable[int], special: bool = False) -> str:
        """Text of `ids`; with `special` control tokens are spelt out, else left out. Raises `RequestError`."""
        known = ids if isinstance(ids, (Sequence, np.ndarray)) or not isinstance(ids, Iterable) else list(ids)
        return self.tokenizer.decode(_token_ids(known).tolist(), special=special)

    def logits(self, ids: Sequence[int] | TokenIds) -> NDArray[np.float32]:
        """f32[T, V]: what the model expects after each of `ids`; computed in chunks of `max_num_batched_tokens`.

        Raises `RequestError` for ids that are no tokens or do not fit the context, `ResourceError` where the result
        does not fit memory.
        """
        request = self._engine.score(_token_ids(ids))
        try:
            while not request.receive().ended:
                pass
        except BaseException:
            self._engine.cancel(request)
            raise
        assert request.sequence.scores is not None
        return request.sequence.scores

    def generate(self, prompt: Prompt, **options: Unpack[Options]) -> Completion:
        """Continue `prompt` and wait for the whole answer. An exception in the wait, Ctrl-C too, cancels it.

        Raises `ConfigError` for a misspelt or impossible option, `RequestError` for a prompt that cannot be served.
        """
        with self.stream(prompt, **options) as stream:
            return stream.collect()

    def stream(self, prompt: Prompt, **options: Unpack[Options]) -> Stream:
        """Continue `prompt`, piece by piece; closing the stream cancels. Raises as `generate`, at once."""
        plan = resolve(options, self.sampling_defaults)
        ids = self.tokenize(prompt) if isinstance(prompt, str) else prompt
        return self._start(ids, plan, Detokenizer(self.tokenizer, continues=True))

    def chat(self, messages: Messages, **options: Unpack[ChatOptions]) -> Completion:
        """The model's next message, as `generate`; its chat template turns `messages` into a prompt."""
        with self.stream_chat(messages, **options) as stream:
            return stream.collect()

    def stream_chat(self, messages: Messages, **options: Unpack[ChatOptions]) -> Stream:
        """The model's next message, piece by piece, as `stream`."""
        reject_unknown(options, CHAT_NAMES, "keyword")
        template_kwargs = check_template_kwargs(options.pop("chat_template_kwargs", None))
        plan = resolve(options, self.sampling_defaults)
        rendered = self.template.render(messages, **template_kwargs)
        return self._start(encode_chat(self.tokenizer, rendered), plan, Detokenizer(self.tokenizer))

    def info(self) -> dict[str, str | int]:
        """Facts for people: those of the executable, the context, and how many pages are free, cached, used."""
        return {**self._engine.facts, "context": self.context, **asdict(self._engine.status())}

    def close(self) -> None:
        """End what is under way with `CancelledError` and free memory and threads; may be called twice."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self, ids: Sequence[int] | TokenIds, plan: Plan, pieces: Detokenizer) -> Stream:
        stops = StopStrings(plan.stop)
        request = self._engine.submit(_token_ids(ids), plan.params, plan.max_tokens)
        return Stream(self._engine, request, pieces, stops)


def _token_ids(ids: object) -> TokenIds:
    """Whole numbers [n]; whether the vocabulary has them is the engine's to say."""
    try:
        array = np.asarray(ids)
    except (TypeError, ValueError):
        array = np.empty((0, 0))
    if array.ndim != 1 or (array.size > 0 and array.dtype.kind not in "iu"):
        raise RequestError(f"a prompt is text or a flat list of token ids, not {repr(ids)[:80]}")
    return array
