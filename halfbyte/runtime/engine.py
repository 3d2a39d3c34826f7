"""`Engine`: one model, one thread that computes, any number of threads that ask."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Thread, current_thread
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import ContextExceededError, KvBudgetExceededError, RequestError
from ..model.backend import Executable
from .adapters import NO_ADAPTERS, Adapters, AdapterUse
from .cache.disk_cache import DiskCache
from .constraint.grammar import Grammar
from .limits import EngineLimits
from .loop import EngineLoop
from .metrics.metrics import Metrics
from .metrics.rejections import Rejections, counted
from .metrics.snapshot import snapshot
from .origin import Origin
from .reader import RowReader
from .request import Request
from .sampling.breakers import Spell
from .sampling.params import SamplingParams
from .sampling.sampler import Sampler
from .sequence import Sequence
from .speculation.speculation import Speculation

TokenIds = NDArray[np.integer[Any]]
T = TypeVar("T")


@dataclass(frozen=True)
class Ask:
    """What is asked of one answer: at most `max_tokens`, else up to the end of the context; see `Options`."""

    params: SamplingParams
    max_tokens: int | None = None
    priority: int = 0
    timeout: float | None = None
    notify: Callable[[], None] | None = None
    adapters: AdapterUse = NO_ADAPTERS
    grammar: Grammar | None = None


@dataclass(frozen=True)
class EngineStatus:
    """How busy an engine is: numbers of sequences and of pages."""

    waiting: int
    running: int
    swapped: int
    pages_free: int
    pages_cached: int
    pages_used: int


class Engine:
    """Runs requests over an executable, which it owns from here on. Any thread may call any method.

    Requests share the executable's KV pages. `facts` is the executable's `info`. Ends with `close`, when nobody holds
    it any more, or with the interpreter. `origin` binds what is cached to the model, `spell` gives a token's bytes.
    """

    def __init__(
        self,
        executable: Executable,
        *,
        vocab_size: int,
        limits: EngineLimits,
        eog_ids: frozenset[int] = frozenset(),
        prefix_cache: bool = True,
        spell: Spell = lambda token: b"",
        origin: Origin | None = None,
        swap_space: int = 0,
        disk: DiskCache | None = None,
        speculation: Speculation | None = None,
        adapters: Adapters | None = None,
    ) -> None:
        self.adapters = adapters or Adapters()
        self.limits = limits
        self.context = limits.context
        self.facts = executable.info()
        self.origin = origin or Origin()
        self.page_len, self.page_bytes = executable.page_len, executable.page_bytes
        self._executable, self.select = executable, executable.top_k
        self._eog_ids, self._spell = eog_ids, spell
        self.vocab_size = vocab_size
        self.rejections = Rejections()
        self._loop = EngineLoop(
            executable,
            vocab_size=vocab_size,
            limits=limits,
            prefix_cache=prefix_cache,
            fingerprint=self.origin.fingerprint,
            swap_space=swap_space,
            disk=disk,
            speculation=speculation,
            num_adapters=len(self.adapters.loaded),
        )
        self._thread = Thread(target=self._loop.run, name="halfbyte-engine", daemon=True)
        self._pid = os.getpid()
        self._finalizer = weakref.finalize(self, _shut_down, self._loop, self._thread, self._pid)
        self._thread.start()

    def submit(self, prompt: TokenIds, ask: Ask) -> Request:
        """Start an answer to `prompt` [n].

        Raises `RequestError` for a prompt that is empty or holds unknown tokens, `ContextExceededError` for one that
        leaves no room for an answer or is longer than prompts may be, `KvBudgetExceededError` for more than the pages
        hold, `QueueFullError`.
        """
        return self.submit_all(prompt, [ask])[0]

    @counted
    def submit_all(self, prompt: TokenIds, asks: list[Ask]) -> list[Request]:
        """Start several answers to one prompt, which is computed once; all or none. Raises as `submit`."""
        self.check_ids(prompt)
        self._check_length(len(prompt), self.limits.max_prompt_tokens)
        first = self._sequence(prompt, asks[0])
        others = [self._branch(first, len(prompt), ask) for ask in asks[1:]]
        return self._enqueue(
            [Request(s, timeout=a.timeout, notify=a.notify) for s, a in zip([first, *others], asks, strict=True)]
        )

    @counted
    def fork(self, request: Request, num_tokens: int, ask: Ask) -> Request:
        """Start an answer that begins with the first `num_tokens` of another; they share pages.

        Raises as `submit`.
        """
        self.check_ids(request.sequence.ids[:num_tokens])
        self._check_length(num_tokens, None)
        child = self._branch(request.sequence, num_tokens, ask)
        return self._enqueue([Request(child, timeout=ask.timeout, notify=ask.notify)])[0]

    @counted
    def read(self, ids: TokenIds, reader: RowReader, adapters: AdapterUse = NO_ADAPTERS) -> Request:
        """Start to show `reader` the logits of each of `ids` [n]. Raises as `submit`."""
        self.check_ids(ids)
        if len(ids) > self.context:
            raise ContextExceededError(
                f"{len(ids)} tokens do not fit a context of {self.context}: load the model with a larger context="
            )
        self._check_pages(len(ids))
        page_len = self._executable.page_len
        sequence = Sequence(ids, max_len=len(ids), page_len=page_len, reader=reader, adapters=adapters)
        return self._enqueue([Request(sequence)])[0]

    def cancel(self, request: Request) -> None:
        """Take a request back; it ends within a step. One that has ended is left alone."""
        self._loop.inbox.cancel(request)

    def canceller(self, owner: object, request: Request) -> weakref.finalize[..., object]:
        """Cancels `request` when called, or when `owner` is collected; holds neither engine nor owner."""
        finalizer = weakref.finalize(owner, self._loop.inbox.cancel, request)
        finalizer.atexit = False
        return finalizer

    def call(self, function: Callable[[EngineLoop], T]) -> T:
        """What `function` returns or raises in the engine's thread, between two steps."""
        self.check_caller()
        loop = self._loop
        return loop.inbox.call(lambda: function(loop))

    def status(self) -> EngineStatus:
        """A snapshot, taken while the engine runs on."""
        scheduler = self._loop.scheduler
        pool, swapped = scheduler.pool, scheduler.num_swapped
        waiting = len(scheduler.waiting) - swapped
        return EngineStatus(waiting, len(scheduler.running), swapped, pool.num_free, pool.num_cached, pool.num_used)

    def metrics(self) -> Metrics:
        """What it did so far, taken while the engine runs on."""
        self._check_process()
        return snapshot(self._loop.meter, self.status(), self.rejections.counts())

    @property
    def closed(self) -> bool:
        """Whether it takes no more requests."""
        return not self._finalizer.alive or self._pid != os.getpid()

    def close(self) -> None:
        """End all requests with `CancelledError`, then free memory and threads; may be called twice."""
        self._finalizer()

    def check_caller(self) -> None:
        """Raise `RequestError` where waiting for the engine would never end: in a fork and in its own thread."""
        self._check_process()
        if self._thread is current_thread():
            raise RequestError(
                "a sampler step or another function that the engine calls asked this model and would wait for itself: "
                "ask from another thread, or another model"
            )

    def check_ids(self, ids: TokenIds) -> None:
        """Raise `RequestError` for tokens that the model cannot be asked about, or not here."""
        self.check_caller()
        if len(ids) == 0:
            raise RequestError("there are no tokens to start from: give a prompt that is not empty")
        outside = np.flatnonzero((ids < 0) | (ids >= self.vocab_size))
        if len(outside):
            place = int(outside[0])
            raise RequestError(
                f"token {int(ids[place])} at position {place} is not in the vocabulary of 0..{self.vocab_size - 1}"
            )

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            raise RequestError(
                f"this model was loaded in process {self._pid} and its threads did not come along to this fork, "
                f"{os.getpid()}: load it again here"
            )

    def _check_length(self, num_tokens: int, most: int | None) -> None:
        if num_tokens >= self.context:
            raise ContextExceededError(
                f"the prompt has {num_tokens} tokens and leaves no room for an answer in a context of {self.context}: "
                "shorten it or load the model with a larger context="
            )
        if most is not None and num_tokens > most:
            raise ContextExceededError(
                f"the prompt has {num_tokens} tokens, and max_prompt_tokens allows {most}: shorten it"
            )

    def _max_len(self, num_tokens: int, ask: Ask) -> int:
        """Most tokens of prompt and answer; raises where an asked-for length is more than the pages hold."""
        held = self._executable.n_pages * self._executable.page_len
        if ask.max_tokens is None:
            self._check_pages(num_tokens + 1)
            return min(self.context, held)
        max_len = min(num_tokens + ask.max_tokens, self.context)
        self._check_pages(max_len)
        return max_len

    def _check_pages(self, num_tokens: int) -> None:
        held = self._executable.n_pages * self._executable.page_len
        if num_tokens > held:
            token_bytes = self._executable.page_bytes // self._executable.page_len
            raise KvBudgetExceededError(
                f"{num_tokens} tokens of prompt and answer need {num_tokens * token_bytes / 1e6:.1f} MB of KV, and "
                f"kv_memory holds {held} tokens: shorten the prompt, lower max_tokens or raise kv_memory",
                needed=num_tokens * token_bytes,
                budget=held * token_bytes,
            )

    def _sequence(self, prompt: TokenIds, ask: Ask) -> Sequence:
        max_len = self._max_len(len(prompt), ask)
        return Sequence(
            prompt,
            max_len=max_len,
            page_len=self._executable.page_len,
            eog_ids=self._eog_ids,
            sampler=self._sampler(prompt, ask, max_len),
            priority=ask.priority,
            submitted_at=perf_counter(),
            adapters=ask.adapters,
        )

    def _branch(self, origin: Sequence, num_tokens: int, ask: Ask) -> Sequence:
        max_len = self._max_len(num_tokens, ask)
        sampler = self._sampler(origin.ids[:num_tokens], ask, max_len)
        child = origin.fork(
            num_tokens, max_len=max_len, sampler=sampler, priority=ask.priority, submitted_at=perf_counter()
        )
        before = origin.sampler and origin.sampler.matcher
        if sampler.matcher and before and before.grammar is ask.grammar:
            child.answer_at = origin.answer_at
            for token in origin.ids[origin.answer_at : num_tokens].tolist():
                sampler.matcher.accept(token)
        return child

    def _sampler(self, prompt: TokenIds, ask: Ask, max_len: int) -> Sampler:
        self._check_bias(ask.params.logit_bias)
        matcher = None if ask.grammar is None else ask.grammar.matcher()
        return Sampler(ask.params, self.select, prompt=prompt, capacity=max_len, spell=self._spell, matcher=matcher)

    def _check_bias(self, bias: Mapping[int, float]) -> None:
        unknown = [token for token in bias if token >= self.vocab_size]
        if unknown:
            raise RequestError(f"logit_bias: token {unknown[0]} is not in the vocabulary of 0..{self.vocab_size - 1}")

    def _enqueue(self, requests: list[Request]) -> list[Request]:
        loop = self._loop
        loop.inbox.submit(requests, num_open=lambda: len(loop.requests), most_open=self.limits.most_open)
        return requests


def _shut_down(loop: EngineLoop, thread: Thread, pid: int) -> None:
    if pid != os.getpid():  # a fork has neither the thread nor the executable's, and waiting for them would hang
        return
    loop.inbox.stop()
    if thread is not current_thread():  # garbage collection may run in the engine's own thread
        thread.join()
