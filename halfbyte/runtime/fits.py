"""Whether a model fits the memory that is left."""

from __future__ import annotations

from ..errors import ResourceError
from .backends import PAGE_LEN, Job
from .memory import free_memory


def check_memory(job: Job) -> None:
    """Raise `ResourceError` before anything is allocated for what could not be held."""
    weights, kv = job.host_weights, job.host_kv_bytes
    free = free_memory()
    if free is not None and weights + kv > free:
        raise ResourceError(
            f"the model needs {(weights + kv) / 1e9:.1f} GB ({weights / 1e9:.1f} GB of weights, {kv / 1e9:.1f} GB for "
            f"{job.n_pages * PAGE_LEN} tokens of KV) and {free / 1e9:.1f} GB are free: take a smaller context= or "
            "kv_memory=, or a smaller model",
            needed=weights + kv,
            free=free,
        )
