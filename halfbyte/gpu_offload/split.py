"""`split`: how many layers go to a GPU, and which ops these are. Pure: nothing here asks a device anything.

The last layers go first and the head with them, so that logits are made where the last hidden state is; the embedding
goes when all layers do.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import ResourceError
from ..model.backend import Layers, Place
from ..model.program import Attention, Combine, KvWrite, MoeRoute, Op, Program, ShortConv
from .device_bytes import DeviceBytes

_LAYER = re.compile(r"\bblk\.(\d+)\.")
_KV_OPS = (KvWrite, Attention, ShortConv)


@dataclass(frozen=True)
class Kept:
    """What stays on the CPU of layers that go: the experts of a mixture, or keys and values and who looks at them."""

    experts: bool = False
    kv: bool = False


@dataclass(frozen=True)
class Split:
    """`places` of the ops; `layers` of `of` are on the GPU and take about `needed` bytes there, of `free`."""

    places: tuple[Place, ...]
    layers: int
    of: int
    needed: int
    free: int

    @property
    def about(self) -> str:
        """For people."""
        if not self.layers:
            return f"no layer fits the {gigabytes(self.free)} that are free on the GPU"
        what = "all" if self.layers == self.of else f"the last {self.layers} of"
        return f"{what} {self.of} layers on the GPU, {gigabytes(self.needed)} of {gigabytes(self.free)} free there"


def split(
    program: Program, wish: Layers, *, sizes: DeviceBytes, free: int, reserve: int, kept: Kept | None = None
) -> Split:
    """Where the ops go for `wish` layers, of which "auto" is as many as fit `free` bytes with `reserve` left.

    Raises `ResourceError` where a number of layers, or "all", needs more than is free.
    """
    regions = regions_of(program)
    total = _layers_in(program)
    cuts = [_places(program, regions, layers, kept or Kept()) for layers in range(total + 1)]
    needed = [sizes.of(program, places) for places in cuts]
    fitting = max(bisect_right(needed, free - reserve) - 1, 0)
    if wish == "auto":
        layers = fitting
    else:
        layers = total if wish == "all" else min(wish, total)
        if needed[layers] > free:
            raise _too_much(layers, needed[layers], free, fitting)
    return Split(cuts[layers], layers, total, needed[layers], free)


def regions_of(program: Program) -> list[int]:
    """For each op 0 for the embedding, 1 and so on for the layers, one more than there are layers for the head.

    An op without a weight or a KV layer belongs to what comes before it.
    """
    behind, region, regions = _layers_in(program) + 1, 0, []
    for op in program.ops:
        layer = _layer_of(op)
        if layer is not None:
            region = layer + 1
        elif op.weights() and region:
            region = behind
        regions.append(region)
    return regions


def gigabytes(n_bytes: int) -> str:
    """For people."""
    return f"{n_bytes / 1e9:.2f} GB"


def _layer_of(op: Op) -> int | None:
    if isinstance(op, _KV_OPS):
        return op.layer
    found = [match for name in op.weights() if (match := _LAYER.search(name))]
    return int(found[0][1]) if found else None


def _layers_in(program: Program) -> int:
    return max((layer + 1 for op in program.ops if (layer := _layer_of(op)) is not None), default=0)


def _places(program: Program, regions: Sequence[int], layers: int, kept: Kept) -> tuple[Place, ...]:
    total = _layers_in(program)
    first = 0 if layers == total else total - layers + 1
    stays = _mixtures(program) if kept.experts else [False] * len(regions)
    return tuple(
        "gpu" if layers and region >= first and not (mixed or (kept.kv and isinstance(op, _KV_OPS))) else "cpu"
        for op, region, mixed in zip(program.ops, regions, stays, strict=True)
    )


def _mixtures(program: Program) -> list[bool]:
    """Whether each op is one of a mixture of experts, from the choice to the sum."""
    dealt: set[str] = set()
    found = []
    for op in program.ops:
        found.append(isinstance(op, MoeRoute) or any(name in dealt for name in op.reads()))
        if found[-1] and not isinstance(op, Combine):
            dealt.update(op.writes())
    return found


def _too_much(layers: int, needed: int, free: int, fitting: int) -> ResourceError:
    fit = f"{fitting} fit" if fitting else "none fits"
    return ResourceError(
        f"{layers} layers need {gigabytes(needed)} on the GPU and {gigabytes(free)} are free: {fit}; take "
        "gpu_layers='auto', a smaller context= or kv_memory=, or kv_on_cpu=True",
        needed=needed,
        free=free,
    )
