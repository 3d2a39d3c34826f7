"""`Conversion`: a checkpoint looked at, planned, and written as a GGUF file."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from ...cpu_kernels.encoding import CompiledSearch
from ...errors import FormatError, UnsupportedError
from ...formats.named_path import named_path
from ...formats.split_writer import SplitWriter
from ...model.archs import ARCHS, CLASSES
from ...quant import FORMATS
from ...quant.encoder import Search
from ...quant.recipe import Recipe
from ...quant.recipes import recipe_named
from ...quant.search import NUMPY
from ...runtime.golden.recording import record, room
from .activation import check_activation
from .blueprint import check_fit
from .checkpoint_folder import CheckpointFolder
from .general import general_metadata
from .job import BeyondRange, Progress, beyond_half, write_tensors
from .merged_source import merged_source
from .plan import ConversionPlan, plan_tensors, widened
from .quantized import plain_source
from .report import ConversionReport
from .target import check_metadata, check_target
from .tensor_source import TensorSource
from .tokenizer import read_tokenizer

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ConversionChoices:
    """What a user decides: the recipe by name, metadata on top, and into files of how many bytes at most.

    `name` is what the model is called where its config does not say, else its folder's name.
    """

    type: str = "f16"
    name: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    split_bytes: int | None = None
    vocab_only: bool = False
    merge_lora: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Converted:
    """The files that were written, and what was lost."""

    paths: tuple[Path, ...]
    report: ConversionReport


class Conversion:
    """Raises on making what is wrong with the checkpoint, before anything is written; see `CheckpointFolder`.

    `UnsupportedError` for an architecture, a way of quantizing or a tokenizer that we do not have.
    """

    def __init__(self, folder: Path, choices: ConversionChoices | None = None) -> None:
        self.choices = choices or ConversionChoices()
        self.recipe: Recipe = recipe_named(self.choices.type)
        check_metadata(self.choices.metadata)
        self.folder = CheckpointFolder(folder)
        self.arch = _arch_of(self.folder)
        self.source: TensorSource = self._open_source()
        self.plan = self._plan()

    def _open_source(self) -> TensorSource:
        source = self.folder.tensors()
        self.folder.check_index(source)
        source = plain_source(source, self.folder.config.given)
        for adapter in self.choices.merge_lora:
            source = merged_source(source, adapter)
        return source

    def _plan(self) -> ConversionPlan:
        checkpoint, config = ARCHS[self.arch].checkpoint, self.folder.config
        own = checkpoint.metadata(config)
        config.raise_problems()
        metadata = general_metadata(self.folder, self.arch, self.choices.name)
        metadata |= {f"{self.arch}.{key}": value for key, value in own.items()}
        plan = plan_tensors(checkpoint, config, self.source, self.recipe, metadata)
        rows = next(tensor.shape.rows for tensor in plan.tensors if tensor.name == "token_embd.weight")
        if own.get("vocab_size", rows) != rows:
            raise FormatError(f"vocab_size is {own['vocab_size']}, but the embedding has {rows} rows", path=config.path)
        metadata = dict(plan.metadata) | read_tokenizer(self.folder.path, rows) | dict(self.choices.metadata)
        plan = ConversionPlan(plan.tensors, plan.computed, metadata)
        check_activation(check_fit(plan, config.path), config)
        return plan

    def write(self, path: str | PathLike[str], *, threads: int = 1, progress: Progress | None = None) -> Converted:
        """Make the file, or the files; nothing is left behind where it fails.

        Weights beyond what a half can hold keep their tensor in bf16 or float32, and the report says so.
        """
        target = named_path(path)
        check_target(target, (self.folder.path, *self.choices.merge_lora))
        try:
            return self._write(target, threads, progress)
        except BeyondRange as found:
            wider = {found.tensor.name, *beyond_half(self.plan, self.source)}
            self.plan = widened(self.plan, wider)
        converted = self._write(target, threads, progress)
        for name in wider:
            converted.report.losses[name].widened = True
        return converted

    def _write(self, path: Path, threads: int, progress: Progress | None) -> Converted:
        plan, report = self.plan, ConversionReport()
        golden = {} if self.choices.vocab_only else room(len(plan.tensors) + len(plan.computed))
        with SplitWriter(path, {**plan.metadata, **golden}, self.choices.split_bytes) as writer:
            if not self.choices.vocab_only:
                for name, values in plan.computed.items():
                    writer.declare(name, FORMATS["f32"], values.shape[::-1])
                for tensor in plan.tensors:
                    writer.declare(tensor.name, tensor.format, tensor.shape.dims[::-1])
                search = _search_for(plan, progress)
                report = write_tensors(plan, self.source, writer, search, threads=threads, progress=progress)
                record(writer, progress)
            paths = tuple(writer.paths)
        return Converted(paths, report)


def _search_for(plan: ConversionPlan, progress: Progress | None) -> Search:
    """Compiled where any tensor needs one: nobody waits for kernels that only copy floats."""
    searched = any(tensor.format.encoder is not None and not tensor.keeps_blocks for tensor in plan.tensors)
    return CompiledSearch(progress=progress) if searched else NUMPY


def _arch_of(folder: CheckpointFolder) -> str:
    name = folder.class_name
    if name not in CLASSES:
        raise UnsupportedError(f"{folder.config.path}: unknown architecture {name!r}", known=sorted(CLASSES))
    return CLASSES[name]
