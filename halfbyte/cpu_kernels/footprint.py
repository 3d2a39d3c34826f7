"""`footprint`: the memory that a program will take on this machine, from the shapes of its weights alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..model.backend import Weight
from ..model.kv_types import KvTypes
from ..model.program import Program
from .instruction import peaks_bytes
from .kv_pages import part_bytes
from .lower import Lowering
from .needed import needed_kernels
from .packing import packed_bytes, unplaced
from .place import Plan
from .step_memory import step_memory
from .weight_roles import matrices_of, tables_of


class Footprint(NamedTuple):
    """Bytes: of the `weights` a token reads `read`, a page of KV takes `page`. Tables stay in the file.

    `kernels` are the names of those that it runs.
    """

    weights: int
    read: int
    page: int
    buffers: int
    kernels: list[str]


def footprint(
    program: Program, weights: Mapping[str, Weight], *, max_tokens: int, threads: int, kv: KvTypes
) -> Footprint:
    """What `executable.build` will allocate; no data of the weights is looked at."""
    layouts = unplaced(program, weights)
    formats = {name: table.format for name, table in tables_of(program, weights).items()}
    lowering = Lowering(program, layouts, formats, max_tokens, kv)
    buffers = step_memory(Plan(lowering), weights, threads, max_tokens).total + peaks_bytes(program.vocab_size)
    return Footprint(
        weights=sum(map(packed_bytes, lowering.packed.values())),
        read=sum(weight.used * weight.n_bytes for weight in lowering.packed.values()),
        page=sum(sum(part_bytes(layer, kv)) for layer in program.kv_layers),
        buffers=buffers,
        kernels=needed_kernels(lowering.calls, matrices_of(program, weights).values()),
    )
