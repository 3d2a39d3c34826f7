"""Quantized language models on ordinary CPUs: a GGUF file in, tokens out.

    with halfbyte.load("model.gguf") as llm:
        print(llm.generate("The capital of France is", max_tokens=8).text)

Names are imported when first used, so that `import halfbyte` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__
from .errors import (
    CancelledError,
    CheckError,
    ConfigError,
    ContextExceededError,
    DeadlineExceededError,
    FormatError,
    HalfbyteError,
    IncompleteAnswerError,
    KvBudgetExceededError,
    QueueFullError,
    RequestError,
    ResourceError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from .runtime.async_stream import AsyncStream
    from .runtime.cache.explain import CacheReport
    from .runtime.completion import Completion, StreamEvent
    from .runtime.embedder import Embedder
    from .runtime.llm import LLM
    from .runtime.load import load
    from .runtime.load_embedder import load_embedder
    from .runtime.memory_plan import MemoryPlan, plan
    from .runtime.metrics.metrics import Metrics
    from .runtime.sampling.logprobs import TokenLogprobs
    from .runtime.sampling.params import SamplingParams
    from .runtime.score import Score
    from .runtime.stream import Stream
    from .runtime.timings import Timings

_LAZY = {
    "LLM": ".runtime.llm",
    "AsyncStream": ".runtime.async_stream",
    "CacheReport": ".runtime.cache.explain",
    "Completion": ".runtime.completion",
    "Embedder": ".runtime.embedder",
    "Score": ".runtime.score",
    "MemoryPlan": ".runtime.memory_plan",
    "Metrics": ".runtime.metrics.metrics",
    "SamplingParams": ".runtime.sampling.params",
    "Stream": ".runtime.stream",
    "StreamEvent": ".runtime.completion",
    "Timings": ".runtime.timings",
    "TokenLogprobs": ".runtime.sampling.logprobs",
    "load": ".runtime.load",
    "load_embedder": ".runtime.load_embedder",
    "plan": ".runtime.memory_plan",
}

__all__ = [
    "LLM",
    "AsyncStream",
    "CacheReport",
    "CancelledError",
    "CheckError",
    "Completion",
    "ConfigError",
    "ContextExceededError",
    "DeadlineExceededError",
    "Embedder",
    "FormatError",
    "HalfbyteError",
    "IncompleteAnswerError",
    "KvBudgetExceededError",
    "MemoryPlan",
    "Metrics",
    "QueueFullError",
    "RequestError",
    "ResourceError",
    "SamplingParams",
    "Score",
    "Stream",
    "StreamEvent",
    "Timings",
    "TokenLogprobs",
    "UnsupportedError",
    "__version__",
    "load",
    "load_embedder",
    "plan",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
