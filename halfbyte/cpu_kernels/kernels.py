"""Names of all kernels and the module each is written in. Runs without numba: those modules do not."""

from __future__ import annotations

from ..errors import UnsupportedError

MODULES = {
    "linear": "linear",
    "experts": "expert_linear",
    "route": "route",
    "dispatch": "dispatch",
    "combine": "combine",
    "pack": "pack",
    "embed": "embed",
    "norm": "norm",
    "layer": "norm",
    "quantize": "quantize",
    "gated": "gated",
    "act": "gated",
    "mul": "gated",
    "angles": "rope",
    "rope": "rope",
    "kv": "kv_write",
    "attention": "attention",
    "conv": "short_conv",
    "add": "elementwise",
    "scale": "elementwise",
    "softcap": "elementwise",
    "take": "elementwise",
    "top": "top_k",
    "read": "read",
    "trial": "grid_search",
    "search": "search",
    "feedback": "feedback",
    "begin": "execute",
    "run": "execute",
    "work": "execute",
}
"""The part of a kernel's name before the first underscore, to its module; there `KERNELS` holds it by its full name."""

EXECUTOR = ("begin", "run", "work")


def module_of(kernel: str) -> str:
    """The module a kernel is written in."""
    prefix = kernel.partition("_")[0]
    if prefix not in MODULES:
        raise UnsupportedError(f"no kernel is called {kernel!r}", known=MODULES)
    return MODULES[prefix]
