"""`BareModel`: a model without an engine, for tools that run whole windows of text through it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from types import TracebackType
from typing import Self, Unpack

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError
from ..formats import open_gguf
from ..model import bind
from ..model.backend import Progress
from ..model.program import Program, StepBatch
from ..text import build_tokenizer
from .backends import BACKENDS, PAGE_LEN, Job
from .config import LoadConfig
from .gpu_layers import GpuOptions
from .preparing import prepared


class BareModel:
    """Runs windows of at most `window` tokens, each from an empty context and in one step."""

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        window: int = 512,
        threads: int | None = None,
        backend: str = "cpu",
        isa: str | None = None,
        kv: str = "f16",
        progress: Progress | None = None,
        rewrite: Callable[[Program], Program] | None = None,
        **gpu: Unpack[GpuOptions],
    ) -> None:
        """`rewrite` may change the program before it is made ready: see `model/taps.py`. `gpu` is as for `load`.

        Raises what `load` raises, `ConfigError` for a window longer than the model's context among it.
        """
        one = LoadConfig(context=window, max_num_batched_tokens=window, max_num_seqs=1)
        config = replace(one, threads=threads, kv=kv, backend=backend, isa=isa, **gpu)
        self.window = window
        with open_gguf(path) as file:
            self.path, self.metadata = file.path, file.metadata
            self._check_whole = file.whole()
            bound = bind(file)
            self.context = bound.context
            if window > self.context:
                raise ConfigError(
                    f"a window of {window} is more than the {self.context} tokens that {self.path} was made for: take "
                    "a smaller window",
                    key="window",
                )
            self.program = bound.program if rewrite is None else rewrite(bound.program)
            self.tokenizer = build_tokenizer(file.metadata)
            job, builder = prepared(Job(self.program, bound.weights, config, progress), BACKENDS[backend])
            self.executable = builder(job)
        pages = -(-window // PAGE_LEN)
        self._page_table = np.arange(pages, dtype=np.int32)[None]

    @property
    def vocab_size(self) -> int:
        """V."""
        return self.program.vocab_size

    @property
    def width(self) -> int:
        """Of a row of logits: V, or D of an encoder, which has states instead."""
        return self.program.widths[self.program.logits]

    def logits(
        self,
        ids: NDArray[np.int32],
        rows: NDArray[np.int32],
        *,
        start: int = 0,
        out: NDArray[np.float32] | None = None,
    ) -> NDArray[np.float32]:
        """f32[R, V]: logits behind the tokens `rows` of a window `ids` i32[T].

        `start`: tokens before it were computed by the calls before, with the same ids, and are not computed again.
        `out` is memory to write to. Raises `FormatError` where the model's file is no longer whole.
        """
        if not 0 <= start < len(ids) <= self.window:
            raise ConfigError(f"a window has 1 to {self.window} tokens, not {len(ids)} from {start} on")
        places = np.arange(start, len(ids), dtype=np.int32)
        batch = StepBatch(
            ids=np.ascontiguousarray(ids[start:], np.int32),
            positions=places,
            seq_of=np.zeros(len(places), np.int32),
            slots=places.copy(),
            page_table=self._page_table,
            seq_len=np.array([len(ids)], np.int32),
            logit_rows=np.asarray(rows, np.int32) - np.int32(start),
        )
        if out is None:
            out = np.empty((len(rows), self.width), np.float32)
        self._check_whole()
        self.executable.run(batch, out)
        return out

    def tapped(self, name: str) -> NDArray[np.float32]:
        """f32[T, width]: a tapped value of the last window, to be read before the next."""
        return self.executable.tapped(name)

    def close(self) -> None:
        """Free memory and threads; may be called twice."""
        self.executable.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
