"""`plan`: what a model will take, and give, before it is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Unpack

from ..errors import ConfigError
from ..formats import GGUFFile, open_gguf
from ..model import bind
from ..model.kv_types import kv_types
from .backends import PAGE_LEN, Job
from .config import LoadConfig, LoadOptions
from .load import fit_context, locate
from .memory import free_memory
from .sizes import parse_bytes

PROCESS_BYTES = 36_000_000
"""Python, NumPy, the libraries below and the code of kernels, when a model has answered. Measured."""
TOKENIZER_BYTES = {"gpt2": 590, "llama": 370}
"""Of a token of the vocabulary, by `tokenizer.ggml.model`. Measured; for others the first."""
SHARE_OF_READ = 0.85
"""Of what reading memory gives, what decoding gets. Measured: 0.75 to 0.95."""


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes of this process when its KV pages are full: `weights`, `kv`, `buffers` of a step, and the `rest`, which is
    Python, its libraries and the tokenizer. Mapped pages of the file can be dropped and do not count.

    `memory` is what was given, else what is free, None where the system does not tell; `longest_context` is the most
    that fits it, at most the model's own and 0 for none. `kernels` are those that it runs.
    """

    architecture: str
    parameters: int
    file_bytes: int
    context: int
    weights: int
    kv: int
    buffers: int
    rest: int
    memory: int | None
    longest_context: int | None
    token_kv_bytes: int
    token_weight_bytes: int
    kernels: tuple[str, ...]

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.kv + self.buffers + self.rest

    @property
    def fits(self) -> bool:
        """Whether `memory` is enough, as far as is known."""
        return self.memory is None or self.total <= self.memory

    def tokens_per_second(self, read_gb_s: float, position: int = 0) -> float:
        """What one answer gets whose text has come to `position`, where memory is read at `read_gb_s`."""
        read = self.token_weight_bytes + position * self.token_kv_bytes
        return SHARE_OF_READ * read_gb_s * 1e9 / read


def plan(model: str | PathLike[str], *, memory: int | str | None = None, **options: Unpack[LoadOptions]) -> MemoryPlan:
    """What `load` of the same `options` would take on the CPU, from the file's header alone; nothing is loaded.

    `memory` is a number of bytes or a text such as "8GB", by default what is free. Raises as `load`.
    """
    config = LoadConfig(**options)
    if config.gpu_layers != 0:
        raise ConfigError("a plan is of a model on the CPU: leave out gpu_layers", key="gpu_layers")
    room = free_memory() if memory is None else parse_bytes(memory, "memory")
    with open_gguf(locate(model, None)) as file:
        return _plan(file, config, room)


def _plan(file: GGUFFile, config: LoadConfig, room: int | None) -> MemoryPlan:
    from ..cpu_kernels.footprint import footprint
    from ..cpu_kernels.threads import count

    bound = bind(file)
    most = bound.spec.context_length
    job = Job(bound.program, bound.weights, fit_context(config, most), None)
    tokens, threads = job.config.step_tokens, count(config.threads)
    found = footprint(bound.program, bound.weights, max_tokens=tokens, threads=threads, kv=kv_types(config.kv))
    rest = PROCESS_BYTES + _tokenizer_bytes(file.metadata)
    left = None if room is None else room - found.weights - found.buffers - rest
    return MemoryPlan(
        architecture=bound.spec.arch,
        parameters=sum(info.n_elements for info in file.tensors.values()),
        file_bytes=sum(part.stat().st_size for part in file.parts),
        context=job.config.context,
        weights=found.weights,
        kv=found.page * job.n_pages,
        buffers=found.buffers,
        rest=rest,
        memory=room,
        longest_context=None if left is None else _longest(left, found.page, most),
        token_kv_bytes=found.page // PAGE_LEN,
        token_weight_bytes=found.read,
        kernels=tuple(found.kernels),
    )


def _longest(n_bytes: int, page: int, most: int) -> int:
    """Tokens of whole pages that `n_bytes` hold."""
    return max(min(n_bytes // page * PAGE_LEN, most), 0) if page else most


def _tokenizer_bytes(metadata: Mapping[str, object]) -> int:
    tokens = metadata.get("tokenizer.ggml.tokens")
    count = len(tokens) if hasattr(tokens, "__len__") else 0
    return count * TOKENIZER_BYTES.get(str(metadata.get("tokenizer.ggml.model")), TOKENIZER_BYTES["gpt2"])
