"""`ARCHS`: `general.architecture` to the file that describes it; `CLASSES`: checkpoints to these."""

from __future__ import annotations

from ...registry import Registry
from ..arch import Arch

ARCHS: Registry[Arch] = Registry(
    "architecture",
    "halfbyte.model.archs",
    {
        "bert": ".bert:BERT",
        "gemma2": ".gemma2:GEMMA2",
        "gemma3": ".gemma3:GEMMA3",
        "gpt-oss": ".gpt_oss:GPT_OSS",
        "granite": ".granite:GRANITE",
        "lfm2": ".lfm2:LFM2",
        "llama": ".llama:LLAMA",
        "nomic-bert": ".nomic_bert:NOMIC_BERT",
        "olmo2": ".olmo2:OLMO2",
        "phi3": ".phi3:PHI3",
        "qwen2": ".qwen2:QWEN2",
        "qwen3": ".qwen3:QWEN3",
        "qwen3moe": ".qwen3moe:QWEN3MOE",
        "smollm3": ".smollm3:SMOLLM3",
    },
)

CLASSES: dict[str, str] = {
    "BertForMaskedLM": "bert",
    "BertModel": "bert",
    "Gemma2ForCausalLM": "gemma2",
    "Gemma3ForCausalLM": "gemma3",
    "GptOssForCausalLM": "gpt-oss",
    "GraniteForCausalLM": "granite",
    "Lfm2ForCausalLM": "lfm2",
    "LlamaForCausalLM": "llama",
    "MinistralForCausalLM": "llama",
    "MistralForCausalLM": "llama",
    "NomicBertModel": "nomic-bert",
    "MixtralForCausalLM": "llama",
    "Olmo2ForCausalLM": "olmo2",
    "Olmo3ForCausalLM": "olmo2",
    "Phi3ForCausalLM": "phi3",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen3MoeForCausalLM": "qwen3moe",
    "SmolLM3ForCausalLM": "smollm3",
}
"""Names in a checkpoint's `config.json` ("architectures") to the architecture that describes it."""
