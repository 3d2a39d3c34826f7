"""`ARCHS`: `general.architecture` to the file that describes it; `CLASSES`: checkpoints to these."""

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

CLASSES: dict[str, str] = {
    "Gemma3ForCausalLM": "gemma3",
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "llama",
    "Qwen2ForCausalLM": "qwen2",
}
"""Names in a checkpoint's `config.json` ("architectures") to the architecture that describes it."""
