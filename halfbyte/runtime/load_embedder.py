"""`load_embedder`: from an encoder's name to an `Embedder`."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import Unpack

from ..errors import ConfigError, nearest
from ..formats import GGUFFile, open_gguf
from ..model import bind
from ..model.backend import Progress
from ..model.bind import BoundModel
from ..model.metadata import Metadata
from ..model.pooling import POOLINGS, read_pooling
from ..text import build_tokenizer
from .backends import BACKENDS, PAGE_LEN, Job
from .config import LoadConfig
from .embedder import Embedder
from .gpu_layers import GpuOptions
from .guarded import GuardedExecutable
from .load import locate
from .preparing import prepared
from .purpose import check_embeds

MAX_SEQS = 64
"""Texts in one step."""


def load_embedder(
    model: str | PathLike[str],
    *,
    pooling: str | None = None,
    max_num_batched_tokens: int = 512,
    threads: int | None = None,
    backend: str = "cpu",
    isa: str | None = None,
    progress: Progress | None = None,
    **gpu: Unpack[GpuOptions],
) -> Embedder:
    """Make an encoder ready to make vectors of texts; close it, or let go of it, to free its memory and threads.

    `model` is named as for `load`. `pooling` is how the states of a text's tokens become one vector: their "mean", the
    first ("cls"), the "last", or as the file says. A step computes whole texts, at least one and of short ones as many
    as have `max_num_batched_tokens` tokens together. The other keywords are as in `LoadConfig`.

    Raises what `load` raises, and `UnsupportedError` for a model that is no encoder.
    """
    if progress is not None and not callable(progress):
        raise ConfigError(f"progress must be a function of (what, done, total), not {progress!r}", key="progress")
    if pooling is not None and pooling not in POOLINGS:
        known = nearest(str(pooling), POOLINGS) or f"; known: {', '.join(POOLINGS)}"
        raise ConfigError(f"pooling={pooling!r} is no way to pool{known}", key="pooling")
    config = LoadConfig(
        max_num_batched_tokens=max_num_batched_tokens,
        max_num_seqs=MAX_SEQS,
        kv="f32",
        threads=threads,
        backend=backend,
        isa=isa,
        **gpu,
    )
    with open_gguf(locate(model, progress)) as file:
        bound = bind(file)
        check_embeds(bound.program, file.path)
        pooling = pooling or read_pooling(Metadata(file.metadata, bound.spec.arch, file.path))
        return _wire(file, bound, config, pooling, progress)


def _wire(file: GGUFFile, bound: BoundModel, config: LoadConfig, pooling: str, progress: Progress | None) -> Embedder:
    context = bound.spec.context_length
    tokens = max(config.step_tokens, context)
    job = Job(bound.program, bound.weights, replace(config, context=context, max_num_batched_tokens=tokens), progress)
    # Every text may leave a part of its last page unused.
    pages = tokens // PAGE_LEN + job.max_seqs
    job = replace(job, config=replace(job.config, kv_memory=pages * job.page_bytes))
    tokenizer = build_tokenizer(file.metadata)
    job, builder = prepared(job, BACKENDS[config.backend])
    built = builder(job)
    return Embedder(
        GuardedExecutable(built, file.whole()),
        tokenizer,
        spec=bound.spec,
        pooling=pooling,
        max_tokens=tokens,
        max_seqs=job.max_seqs,
        metadata=file.metadata,
    )
