"""`LoadConfig`: how a model is loaded, checked once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from os import PathLike
from typing import Any

from ..errors import ConfigError, UnsupportedError
from ..model.backend import Layers
from ..model.kv_types import kv_types
from .adapter_loading import AdapterFiles, adapter_files
from .gpu_layers import GpuOptions, problems_of_gpu
from .limits import MOST_DRAFTS
from .sampling.parameters import as_float

SPECULATIONS = ("ngram", "off")
"""Where drafts may come from besides a draft model."""
_COUNTS = (
    "context",
    "max_num_batched_tokens",
    "max_num_seqs",
    "threads",
    "max_prompt_tokens",
    "max_queued",
    "max_draft",
)
_OPTIONAL = ("threads", "max_num_batched_tokens", "max_prompt_tokens", "max_queued")
STEP_TOKENS = 512
STRETCH = 2.5
"""Of a step where nobody says how many: about where more make a CPU no faster."""


class LoadOptions(GpuOptions, total=False):
    """Keywords of `load`: the fields of `LoadConfig`."""

    context: int
    threads: int | None
    kv: str
    kv_memory: int | float | str | None
    max_num_batched_tokens: int | None
    max_num_seqs: int
    max_prompt_tokens: int | None
    max_queued: int | None
    prompt_stretch: float | None
    prefix_cache: bool
    swap_space: int | str
    disk_cache: str | PathLike[str] | None
    disk_cache_size: int | str
    speculation: str
    draft_model: str | PathLike[str] | None
    max_draft: int
    adapters: AdapterFiles | None
    backend: str
    isa: str | None
    check: bool


@dataclass(frozen=True)
class LoadConfig:
    """How a model is loaded.

    `context` is the most tokens of one sequence, prompt and answer together, at most what the model was made for. All
    sequences share KV pages of `kv_memory`: bytes, a size like "2GB", a share of the free memory (0.3), or None for one
    context; numbers in them are of type `kv`: f16, q8_0, q4_0, f32, or of two, keys and values, as in "q8_0/q4_0"; see
    `docs/kv-types.md`. A step computes at most `max_num_batched_tokens` tokens (a longer prompt is cut into chunks) of
    at most `max_num_seqs` sequences; None is 512, or 2048 where a GPU computes everything. Beside answers under way
    prompts get so much of it that a step takes about `prompt_stretch` times one without, or all of it for infinity;
    None is 2.5, or 16 where a GPU computes everything, whose steps are short and which reads by the hundred tokens.
    Further requests wait, at most `max_queued` of them; prompts have at most `max_prompt_tokens`. `prefix_cache` keeps
    the beginnings of prompts so that the next request with the same beginning skips it. Sequences whose pages are
    needed for more urgent ones go to a temporary file of up to `swap_space`, or are computed again. The folder
    `disk_cache`, which processes may share, keeps beginnings of prompts for later ones, about `disk_cache_size` at
    most; what was said can be told from it, so it is made for its owner alone. `threads` None takes what suits the
    machine, `isa` None the best instruction set it has.

    A step may compute up to `max_draft` (1 to 15) guessed tokens of an answer along, where measurements say that it
    pays; the answer is the same. Guesses are what followed the last tokens before ("ngram"; "off" is none of these),
    and what `draft_model`, a smaller model with the same vocabulary, named as models are, would say.

    `adapters` are LoRA files for this model: paths, pairs (path, scale), or a mapping of names to either, where they
    are not to be called as their files. What a request gets that says nothing is the scale, 1 by default; see
    `docs/adapters.md`.

    The last `gpu_layers` layers are computed by an NVIDIA GPU, their keys and values among them: a number, "all", or
    "auto" for as many as fit its memory, which are none where there is no GPU. `experts_on_cpu` leaves their experts to
    the CPU, `kv_on_cpu` their keys and values and the attention to them; see `docs/gpu.md`.

    `check` compares tensors, token ids and the logits of a short prompt with what was written into the file when it was
    made, or where nothing was with what the reference computes, which takes a few seconds for a thousand million
    weights; where they differ, `CheckError` is raised. With KV types of fewer bits weights are packed twice for it.

    Raises `ConfigError` that names every value out of range, `UnsupportedError` for an unknown KV type.
    """

    context: int = 4096
    threads: int | None = None
    kv: str = "f16"
    kv_memory: int | float | str | None = None
    max_num_batched_tokens: int | None = None
    max_num_seqs: int = 16
    max_prompt_tokens: int | None = None
    max_queued: int | None = None
    prompt_stretch: float | None = None
    prefix_cache: bool = True
    swap_space: int | str = 0
    disk_cache: str | PathLike[str] | None = None
    disk_cache_size: int | str = "4GB"
    speculation: str = "ngram"
    draft_model: str | PathLike[str] | None = None
    max_draft: int = MOST_DRAFTS
    adapters: AdapterFiles | None = None
    gpu_layers: Layers = 0
    experts_on_cpu: bool = False
    kv_on_cpu: bool = False
    backend: str = "cpu"
    isa: str | None = None
    check: bool = False

    def __post_init__(self) -> None:
        problems = dict(self._problems())
        if problems:
            raise ConfigError("; ".join(problems.values()), key=next(iter(problems)))
        object.__setattr__(self, "kv", kv_types(self.kv).name)
        object.__setattr__(self, "adapters", adapter_files(self.adapters))
        if self.speculation not in SPECULATIONS:
            raise UnsupportedError(f"speculation={self.speculation!r} is no way to guess tokens", known=SPECULATIONS)
        for name in _COUNTS:
            value = getattr(self, name)
            if value is not None:  # a NumPy integer becomes Python's
                object.__setattr__(self, name, int(value))
        if not isinstance(self.gpu_layers, str):
            object.__setattr__(self, "gpu_layers", int(self.gpu_layers))
        if self.prompt_stretch is not None:
            object.__setattr__(self, "prompt_stretch", float(self.prompt_stretch))

    @property
    def step_tokens(self) -> int:
        """Tokens of a step."""
        return self.max_num_batched_tokens or STEP_TOKENS

    @property
    def stretch(self) -> float:
        """How many times a step may take that reads prompts beside answers."""
        return STRETCH if self.prompt_stretch is None else self.prompt_stretch

    @property
    def gpu_options(self) -> GpuOptions:
        """What is said of a GPU."""
        return {"gpu_layers": self.gpu_layers, "experts_on_cpu": self.experts_on_cpu, "kv_on_cpu": self.kv_on_cpu}

    def _problems(self) -> Iterator[tuple[str, str]]:
        for name in _COUNTS:
            value: Any = getattr(self, name)
            if name in _OPTIONAL and value is None:
                continue
            whole = isinstance(value, Integral) and not isinstance(value, bool)
            if not (whole and 1 <= value < 2**31):
                yield name, f"{name} must be an integer of at least 1, not {value!r}"
        if not (self.disk_cache is None or isinstance(self.disk_cache, (str, PathLike))) or self.disk_cache == "":
            yield "disk_cache", f"disk_cache must be a folder or None, not {self.disk_cache!r}"
        if isinstance(self.max_draft, int) and self.max_draft > MOST_DRAFTS:
            yield "max_draft", f"max_draft must be at most {MOST_DRAFTS}, not {self.max_draft!r}"
        if self.draft_model is not None and not isinstance(self.draft_model, (str, PathLike)):
            yield "draft_model", f"draft_model must be a path, a name or None, not {self.draft_model!r}"
        for name in ("kv", "backend", "isa"):
            value = getattr(self, name)
            if not isinstance(value, str) and not (name == "isa" and value is None):
                yield name, f"{name} must be a string, not {value!r}"
        yield from problems_of_gpu(self.gpu_layers, self.experts_on_cpu, self.kv_on_cpu, self.backend)
        stretch: Any = self.prompt_stretch
        number = isinstance(stretch, Real) and not isinstance(stretch, bool)
        if stretch is not None and not (number and as_float(stretch) >= 1):
            yield "prompt_stretch", f"prompt_stretch must be a number of at least 1, not {stretch!r}"
        for name in ("prefix_cache", "check"):
            if not isinstance(getattr(self, name), bool):
                yield name, f"{name} must be True or False, not {getattr(self, name)!r}"
