"""An adapter of every kind of decoder: converted, it adds what it adds to the original."""

import warnings

import numpy as np
import peft
import pytest
import torch

from halfbyte.errors import UnsupportedError
from halfbyte.formats import open_gguf
from halfbyte.model import bind
from halfbyte.model.adapt import adapt
from halfbyte.model.adapter import read_adapter
from halfbyte.model.kv_types import KvTypes
from halfbyte.model.reference import ReferenceExecutable
from halfbyte.tools.convert.adapter import convert_adapter
from tests.model.batches import run_all, step
from tests.model.checkpoints.converted import convert
from tests.model.checkpoints.test_same_answers import CASES
from tests.model.checkpoints.tiny_checkpoint import SIZES, answers, make, prompts

KINDS = (
    "llama-biases",
    "qwen2",
    "qwen3",
    "gemma2",
    "granite",
    "gpt-oss",
    "lfm2",
    "olmo2",
    "phi3",
    "smollm3",
    "mixtral",
)
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
IDS = prompts([30])[0]


def adapted_answers(model, folder, targets):
    """Logits f32[T, V] with an adapter of its linear layers, which is written to `folder`."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of one library to the other
        config = peft.LoraConfig(r=3, lora_alpha=6, target_modules=targets)
        wrapped = peft.get_peft_model(model, config).eval()
        for name, values in wrapped.named_parameters():
            if ".lora_" in name:
                values.copy_(0.1 * torch.randn(values.shape))
        wrapped.save_pretrained(folder)
    return answers(wrapped, [IDS])[0]


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_those_of_peft(tmp_path, kind):
    name, choices = CASES[kind]
    model = make(tmp_path, name, **choices)
    (plain,) = answers(model, [IDS])
    wanted = adapted_answers(model, tmp_path / "adapter", ATTENTION if kind == "mixtral" else "all-linear")
    bound = bind(open_gguf(convert(tmp_path)))
    convert_adapter(tmp_path / "adapter", tmp_path, tmp_path / "adapter.gguf", type="f32")
    with open_gguf(tmp_path / "adapter.gguf") as file:
        adapted = adapt(bound, [read_adapter(file, bound.spec.arch, bound.program)])
    runner = ReferenceExecutable(adapted.program, adapted.weights, n_pages=2, kv=KvTypes("f32", "f32"))
    batch = step([(IDS, 0, [0, 1])], 16)
    on, off = (type(batch)(**(vars(batch) | {"adapter_scales": np.float32([[scale]])})) for scale in (1, 0))
    assert np.abs(wanted - plain).max() > 0.01
    np.testing.assert_allclose(run_all(runner, [on], SIZES["vocab_size"]), wanted, atol=1e-4)
    np.testing.assert_allclose(run_all(runner, [off], SIZES["vocab_size"]), plain, atol=1e-4)


def test_experts_are_refused(tmp_path):
    name, choices = CASES["mixtral"]
    adapted_answers(make(tmp_path, name, **choices), tmp_path / "adapter", "all-linear")
    with pytest.raises(UnsupportedError, match="target_parameters"):
        convert_adapter(tmp_path / "adapter", tmp_path, tmp_path / "adapter.gguf")
