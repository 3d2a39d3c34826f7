"""What may be said of layers on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any, TypedDict

from ..model.backend import Layers


class GpuOptions(TypedDict, total=False):
    """Keywords about layers on a GPU, as `LoadConfig` has them."""

    gpu_layers: Layers
    experts_on_cpu: bool
    kv_on_cpu: bool


HOW = "a number of layers of at least 0, 'auto' or 'all'"


def problems_of_gpu(gpu_layers: Any, experts_on_cpu: Any, kv_on_cpu: Any, backend: object) -> Iterator[tuple[str, str]]:
    """What is wrong with these keywords of `load`, by their names."""
    whole = isinstance(gpu_layers, Integral) and not isinstance(gpu_layers, bool) and int(gpu_layers) >= 0
    if not whole and not (isinstance(gpu_layers, str) and gpu_layers in ("auto", "all")):
        yield "gpu_layers", f"gpu_layers must be {HOW}, not {gpu_layers!r}"
    elif gpu_layers != 0 and backend != "cpu":
        yield "gpu_layers", f"gpu_layers takes layers from backend='cpu', not from {backend!r}"
    for name, value in (("experts_on_cpu", experts_on_cpu), ("kv_on_cpu", kv_on_cpu)):
        if not isinstance(value, bool):
            yield name, f"{name} must be True or False, not {value!r}"
        elif value and whole and gpu_layers == 0:
            yield name, f"{name} is about layers on a GPU: say how many with gpu_layers"
