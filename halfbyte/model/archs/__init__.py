"""`ARCHS`: `general.architecture` to the file that describes it."""

from __future__ import annotations

from ...registry import Registry
from ..arch import Arch

ARCHS: Registry[Arch] = Registry(
    "architecture",
    "halfbyte.model.archs",
    {
        "gemma3": ".gemma3:GEMMA3",
        "llama": ".llama:LLAMA",
        "qwen2": ".qwen2:QWEN2",
    },
)
