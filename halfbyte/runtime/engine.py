"""`Engine`: one model, one thread that computes, any number of threads that ask."""

from __future__ import annotations

import os
import weakref
from dataclasses import dataclass
from threading import Thread, current_thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ContextExceededError, RequestError, ResourceError
from ..model.backend import Executable
from .loop import EngineLoop
from .memory import free_memory
from .request import Request
from .sampling.params import SamplingParams
from .sampling.sampler import Sampler
from .sequence import Sequence

TokenIds = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class EngineStatus:
    """How busy an engine is: numbers of sequences and of pages."""

    waiting: int
    running: int
    pages_free: int
    pages_cached: int
    pages_used: int


class Engine:
    """Runs requests over an executable, which it owns from here on. Any thread may call any method.

    `context` is the most tokens of one sequence, prompt and answer together; the executable's pages must hold that
    many. `facts` is the executable's `info`. Ends with `close`, when nobody holds it any more, or with the interpreter.
    """

    def __init__(
        self,
        executable: Executable,
        *,
        vocab_size: int,
        context: int,
        eog_ids: frozenset[int] = frozenset(),
        max_num_seqs: int = 8,
        max_num_batched_tokens: int = 512,
        prefix_cache: bool = True,
    ) -> None:
        assert executable.n_pages * executable.page_len >= context
        self.context = context
        self.facts = executable.info()
        self._executable = executable
        self._eog_ids = eog_ids
        self._vocab_size = vocab_size
        self._loop = EngineLoop(
            executable,
            vocab_size=vocab_size,
            context=context,
            max_num_seqs=min(max_num_seqs, max_num_batched_tokens),
            max_num_batched_tokens=max_num_batched_tokens,
            prefix_cache=prefix_cache,
        )
        self._thread = Thread(target=self._loop.run, name="halfbyte-engine", daemon=True)
        self._pid = os.getpid()
        self._finalizer = weakref.finalize(self, _shut_down, self._loop, self._thread, self._pid)
        self._thread.start()

    def submit(self, prompt: TokenIds, params: SamplingParams, max_tokens: int | None = None) -> Request:
        """Start an answer to `prompt` [n] of at most `max_tokens` tokens, or up to the end of the context.

        Raises `RequestError` for a prompt that is empty or holds unknown tokens, `ContextExceededError` for one that
        leaves no room for an answer.
        """
        self._check(prompt)
        if len(prompt) >= self.context:
            raise ContextExceededError(
                f"the prompt has {len(prompt)} tokens and leaves no room for an answer in a context of {self.context}: "
                "shorten it or load the model with a larger context="
            )
        room = self.context - len(prompt)
        max_len = len(prompt) + (room if max_tokens is None else min(max_tokens, room))
        sampler = Sampler(params, self._executable.top_k, prompt=prompt, capacity=max_len)
        return self._enqueue(
            Sequence(
                prompt,
                max_len=max_len,
                page_len=self._executable.page_len,
                eog_ids=self._eog_ids,
                sampler=sampler,
            )
        )

    def score(self, ids: TokenIds) -> Request:
        """Start to write the logits of each of `ids` [n] into `request.sequence.scores` f32[n, V].

        Raises as `submit` does, and `ResourceError` where they do not fit memory.
        """
        self._check(ids)
        if len(ids) > self.context:
            raise ContextExceededError(
                f"{len(ids)} tokens do not fit a context of {self.context}: load the model with a larger context="
            )
        scores = _allocate(len(ids), self._vocab_size)
        return self._enqueue(Sequence(ids, max_len=len(ids), page_len=self._executable.page_len, scores=scores))

    def cancel(self, request: Request) -> None:
        """Take a request back; it ends within a step. One that has ended is left alone."""
        self._loop.cancel(request)

    def canceller(self, owner: object, request: Request) -> weakref.finalize[..., object]:
        """Cancels `request` when called, or when `owner` is collected; holds neither engine nor owner."""
        finalizer = weakref.finalize(owner, self._loop.cancel, request)
        finalizer.atexit = False
        return finalizer

    def status(self) -> EngineStatus:
        """A snapshot, taken while the engine runs on."""
        scheduler = self._loop.scheduler
        pool = scheduler.pool
        return EngineStatus(
            len(scheduler.waiting), len(scheduler.running), pool.num_free, pool.num_cached, pool.num_used
        )

    @property
    def closed(self) -> bool:
        """Whether it takes no more requests."""
        return not self._finalizer.alive

    def close(self) -> None:
        """End all requests with `CancelledError`, then free memory and threads; may be called twice."""
        self._finalizer()

    def _check(self, ids: TokenIds) -> None:
        if self._pid != os.getpid():
            raise RequestError(
                f"this model was loaded in process {self._pid} and its threads did not come along to this fork, "
                f"{os.getpid()}: load it again here"
            )
        if len(ids) == 0:
            raise RequestError("there are no tokens to start from: give a prompt that is not empty")
        outside = np.flatnonzero((ids < 0) | (ids >= self._vocab_size))
        if len(outside):
            place = int(outside[0])
            raise RequestError(
                f"token {int(ids[place])} at position {place} is not in the vocabulary of 0..{self._vocab_size - 1}"
            )

    def _enqueue(self, sequence: Sequence) -> Request:
        request = Request(sequence)
        if not self._loop.submit(request):
            raise RequestError("the model is closed: load it again")
        return request


def _allocate(n_tokens: int, vocab_size: int) -> NDArray[np.float32]:
    needed, free = 4 * n_tokens * vocab_size, free_memory()
    if free is not None and needed > free:
        raise ResourceError(
            f"the logits of {n_tokens} tokens take {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB are free: ask for "
            "fewer at a time",
            needed=needed,
            free=free,
        )
    return np.empty((n_tokens, vocab_size), np.float32)


def _shut_down(loop: EngineLoop, thread: Thread, pid: int) -> None:
    if pid != os.getpid():  # a fork has neither the thread nor the executable's, and waiting for them would hang
        return
    loop.stop()
    if thread is not current_thread():  # garbage collection may run in the engine's own thread
        thread.join()
