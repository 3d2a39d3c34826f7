"""`BACKENDS`: who can compute a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from ..errors import ConfigError
from ..model.backend import Executable, Progress, Weight
from ..model.kv_types import kv_types
from ..model.program import Program
from ..registry import Registry
from .config import LoadConfig
from .memory import free_memory
from .sizes import parse_memory

PAGE_LEN = 16


@dataclass(frozen=True)
class Job:
    """What a backend makes ready: a program, its weights, and for how much of everything."""

    program: Program
    weights: dict[str, Weight]
    config: LoadConfig
    progress: Progress | None
    host: Program | None = None
    """What of the program stays in this machine's memory; None is all of it."""

    @property
    def max_seqs(self) -> int:
        """Sequences of one step."""
        return min(self.config.max_num_seqs, self.config.step_tokens)

    @property
    def host_weights(self) -> int:
        """Bytes of the weights in this machine's memory."""
        names = self.weights if self.host is None else self.host.weight_names()
        return sum(self.weights[name].data.nbytes for name in names)

    @cached_property
    def n_pages(self) -> int:
        """Pages that all sequences share: what `kv_memory` holds, or one whole context."""
        whole, wanted = -(-self.config.context // PAGE_LEN), self.config.kv_memory
        if wanted is None:
            return whole
        free = free_memory()
        n_bytes = parse_memory(wanted, "kv_memory", None if free is None else max(free - self.host_weights, 0))
        if n_bytes < self.page_bytes:
            raise ConfigError(
                f"kv_memory={wanted!r} is less than a page of {PAGE_LEN} tokens, which takes {self.page_bytes} bytes",
                key="kv_memory",
            )
        return n_bytes // self.page_bytes

    @property
    def page_bytes(self) -> int:
        """Bytes of keys and values of one page."""
        return self._page_bytes(self.program)

    @property
    def host_kv_bytes(self) -> int:
        """Bytes of keys and values of all pages in this machine's memory."""
        return self._page_bytes(self.program if self.host is None else self.host) * self.n_pages

    def _page_bytes(self, program: Program) -> int:
        types, layers = kv_types(self.config.kv), program.kv_layers
        return PAGE_LEN * sum(kv.kv_heads * types.of(kv).token_bytes(kv.key_size, kv.value_size) for kv in layers)


Builder = Callable[[Job], Executable]

BACKENDS: Registry[Builder] = Registry(
    "backend", __package__, {"cpu": ".backends:build_cpu", "reference": ".backends:build_reference"}
)


def build_cpu(job: Job) -> Executable:
    """Kernels compiled for this CPU."""
    from ..cpu_kernels.executable import build

    return build(
        job.program,
        job.weights,
        n_pages=job.n_pages,
        max_tokens=job.config.step_tokens,
        threads=job.config.threads,
        isa=job.config.isa,
        kv=kv_types(job.config.kv),
        progress=job.progress,
    )


def build_reference(job: Job) -> Executable:
    """NumPy, op by op: slow, and what everything else is compared with."""
    from ..model.reference import ReferenceExecutable

    return ReferenceExecutable(
        job.program,
        job.weights,
        n_pages=job.n_pages,
        page_len=PAGE_LEN,
        max_tokens=job.config.step_tokens,
        kv=kv_types(job.config.kv),
    )
