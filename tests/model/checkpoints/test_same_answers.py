"""A converted checkpoint answers as the original does, several prompts at a time, in chunks."""

import numpy as np
import pytest

from halfbyte.cpu_kernels import executable
from halfbyte.formats import open_gguf
from halfbyte.model import bind
from halfbyte.model.kv_types import KvTypes
from halfbyte.model.reference import ReferenceExecutable
from tests.cpu_kernels.kernel_sets import DETECTED
from tests.model.batches import CHUNKS, run_side_by_side
from tests.model.checkpoints.converted import convert
from tests.model.checkpoints.tiny_checkpoint import SIZES, answers, make, prompts

V = SIZES["vocab_size"]
TOLERANCE = 1e-4
PROMPTS = prompts([70, 23, 41])
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
YARN = {"rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "original_max_position_embeddings": 64}
LINEAR = {"rope_type": "linear", "rope_theta": 500.0, "factor": 3.0}
MOE = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "head_dim": 24}
QWEN_WINDOW = {"use_sliding_window": True, "sliding_window": 20}
SLIDING = ["sliding_attention", "full_attention", "sliding_attention"]
OLMO3 = {"full_attention": YARN, "sliding_attention": {"rope_type": "default", "rope_theta": 500.0}}
CAPS = {"attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0}
MULTIPLIERS = {
    "embedding_multiplier": 3.0,
    "residual_multiplier": 0.4,
    "attention_multiplier": 0.2,
    "logits_scaling": 2.5,
}
GPT_OSS = {"head_dim": 16, "sliding_window": 20, "num_local_experts": 5, "num_experts_per_tok": 2}

CASES = {
    "llama": ("Llama", {}),
    "llama-biases": ("Llama", {"attention_bias": True, "mlp_bias": True, "head_dim": 24}),
    "llama-tied": ("Llama", {"tie_word_embeddings": True}),
    "llama-llama3": ("Llama", {"rope_parameters": LLAMA3}),
    "llama-yarn": ("Llama", {"rope_parameters": YARN}),
    "llama-linear": ("Llama", {"rope_parameters": LINEAR}),
    "mistral": ("Mistral", {"sliding_window": 20}),
    "mistral-wide": ("Mistral", {"sliding_window": None, "head_dim": 32}),
    "ministral": ("Ministral", {"sliding_window": 20, "layer_types": SLIDING, "head_dim": 24}),
    "mixtral": ("Mixtral", {"num_local_experts": 5, "num_experts_per_tok": 2}),
    "qwen2": ("Qwen2", {}),
    "qwen2-window": ("Qwen2", QWEN_WINDOW | {"max_window_layers": 2}),
    "qwen2-yarn": ("Qwen2", {"rope_parameters": YARN | {"attention_factor": 1.3, "beta_fast": 16.0}}),
    "qwen3": ("Qwen3", {"head_dim": 24, "tie_word_embeddings": True}),
    "qwen3-window": ("Qwen3", QWEN_WINDOW | {"head_dim": 24, "layer_types": SLIDING}),
    "qwen3moe": ("Qwen3Moe", MOE | {"num_experts_per_tok": 3, "norm_topk_prob": True}),
    "qwen3moe-mixed": ("Qwen3Moe", MOE | {"mlp_only_layers": [1]}),
    "gemma3": (
        "Gemma3",
        {"head_dim": 24, "query_pre_attn_scalar": 24, "sliding_window": 20, "layer_types": SLIDING},
    ),
    "gemma3-scale": ("Gemma3", {"head_dim": 24, "query_pre_attn_scalar": 40, "sliding_window": 20}),
    "gemma2": ("Gemma2", CAPS | {"head_dim": 24, "query_pre_attn_scalar": 40, "sliding_window": 20}),
    "gemma2-everywhere": ("Gemma2", CAPS | {"head_dim": 32, "sliding_window": 20, "layer_types": SLIDING[:1] * 3}),
    "granite": ("Granite", MULTIPLIERS),
    "granite-biases": ("Granite", MULTIPLIERS | {"attention_bias": True, "mlp_bias": True, "rope_parameters": LLAMA3}),
    "gpt-oss": ("GptOss", GPT_OSS | {"rope_parameters": YARN | {"truncate": False}}),
    "gpt-oss-other": ("GptOss", GPT_OSS | {"rope_parameters": YARN, "layer_types": SLIDING[::-1]}),
    "lfm2": ("Lfm2", {"layer_types": ["conv", "full_attention", "conv"], "block_multiple_of": 16}),
    "lfm2-wide": ("Lfm2", {"full_attn_idxs": [0, 2], "conv_L_cache": 5, "block_auto_adjust_ff_dim": False}),
    "smollm3": ("SmolLM3", {"num_hidden_layers": 4}),
    "smollm3-other": ("SmolLM3", {"no_rope_layers": [0, 1, 1], "rope_parameters": YARN}),
    "olmo2": ("Olmo2", {}),
    "olmo3": ("Olmo3", {"sliding_window": 20, "num_hidden_layers": 4, "rope_parameters": OLMO3}),
    "olmo3-everywhere": ("Olmo3", {"sliding_window": 20, "layer_types": SLIDING[:1] * 3}),
    "phi3": ("Phi3", {"sliding_window": 20}),
    "phi3-partial": ("Phi3", {"partial_rotary_factor": 0.5, "tie_word_embeddings": True}),
}


FLOATS = KvTypes("f32", "f32")


@pytest.fixture(scope="module", params=list(CASES))
def case(request, tmp_path_factory):
    """A converted checkpoint and the logits of the original."""
    folder = tmp_path_factory.mktemp(request.param)
    name, config = CASES[request.param]
    wanted = answers(make(folder, name, **config), PROMPTS)
    return bind(open_gguf(convert(folder))), wanted


def check(runner, wanted):
    for got, logits in zip(run_side_by_side(runner, PROMPTS, V), wanted, strict=True):
        assert 0.3 < np.std(logits) < 30
        assert np.abs(got - logits).max() < TOLERANCE


def test_the_reference_answers_as_the_original(case):
    model, wanted = case
    check(ReferenceExecutable(model.program, model.weights, n_pages=20, page_len=8, kv=FLOATS), wanted)


def test_the_kernels_answer_as_the_original(case):
    model, wanted = case
    sizes = {"n_pages": 20, "max_tokens": sum(CHUNKS)}
    runner = executable.build(model.program, model.weights, **sizes, isa=DETECTED, threads=2, kv=FLOATS)
    check(runner, wanted)
    runner.close()
