"""`BareAnswer`: the rows of a prompt from kernels that nothing else runs on."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self, Unpack

import numpy as np

from ...model.backend import Progress
from ..bare import BareModel
from ..gpu_layers import GpuOptions
from .rows import Floats, Ints
from .tolerance import KV
from .vectors import PROMPT_TOKENS


class BareAnswer:
    """For encoders, which give states and no logits, and where a model is loaded in another way than checks need it."""

    def __init__(
        self,
        path: Path,
        *,
        threads: int | None = None,
        backend: str = "cpu",
        isa: str | None = None,
        progress: Progress | None = None,
        **gpu: Unpack[GpuOptions],
    ) -> None:
        """Raises what `BareModel` does."""
        self._model = BareModel(
            path, window=PROMPT_TOKENS, threads=threads, backend=backend, isa=isa, kv=KV, progress=progress, **gpu
        )

    def __call__(self, ids: Ints) -> Floats:
        """f32[T, V], of an encoder [T, D]."""
        program = self._model.program
        out = np.empty((len(ids), program.widths[program.logits]), np.float32)
        return self._model.logits(ids, np.arange(len(ids), dtype=np.int32), out=out)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._model.close()
