"""A setting that changes what the original answers changes the file too, or is refused: none is passed over."""

import json

import numpy as np
import pytest
import torch
import transformers

from halfbyte.errors import HalfbyteError
from halfbyte.model.archs import ARCHS, CLASSES
from halfbyte.model.checkpoint_config import CheckpointConfig
from halfbyte.quant.recipes import recipe_named
from halfbyte.tools.convert.activation import check_activation
from halfbyte.tools.convert.blueprint import check_fit
from halfbyte.tools.convert.checkpoint_folder import CheckpointFolder
from halfbyte.tools.convert.plan import plan_tensors
from tests.model.checkpoints.test_same_answers import CASES
from tests.model.checkpoints.tiny_checkpoint import answers, make, prompts

PROMPT = np.array(prompts([50]))
ABOUT_NO_ANSWER = {"architectures", "model_type", "dtype", "transformers_version", "use_cache", "vocab_size"}
WITH_TENSORS = {"attention_bias", "mlp_bias"}
"""Whether there are tensors of biases is theirs to tell."""
NAMES = ["llama", "mixtral", "qwen2-window", "qwen3", "qwen3moe", "gemma2", "gemma3", "granite", "gpt-oss", "lfm2"]
NAMES += ["smollm3", "olmo2", "phi3"]
ENCODERS = ("BertModel", "NomicBertModel")


def others(value):
    """What it might be instead."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, max(1, value // 2)]
    if isinstance(value, float):
        return [value * 2] if value else [0.5]
    if isinstance(value, str):
        return ["gelu_pytorch_tanh", "relu"] if value in ("silu", "gelu", "gelu_pytorch_tanh") else []
    return [True, 2.0] if value is None else []


def changes(settings):
    """Each setting by itself as it might be instead, those of the rope too."""
    for key, value in settings.items():
        if key in ABOUT_NO_ANSWER | WITH_TENSORS:
            continue
        yield from ({key: other} for other in others(value))
        if key == "rope_parameters" and isinstance(value, dict):
            yield from ({key: value | {inner: other}} for inner, old in value.items() for other in others(old))


def file_of(source, config):
    """What would be written but for the weights; None where the settings are refused."""
    arch = CLASSES[config.given["architectures"][0]]
    description = ARCHS[arch].checkpoint
    try:
        keys = {f"{arch}.{key}": value for key, value in description.metadata(config).items()}
        keys["general.architecture"] = arch
        plan = plan_tensors(description, config, source, recipe_named("f32"), keys)
        check_activation(check_fit(plan, config.path), config)
    except HalfbyteError:
        return None
    computed = {name: values.tobytes() for name, values in plan.computed.items()}
    return repr(sorted(plan.metadata.items())), computed, [tensor.name for tensor in plan.tensors]


def says(model):
    """Logits of a prompt, of an encoder states."""
    if type(model).__name__ not in ENCODERS:
        return answers(model, PROMPT)[0]
    with torch.no_grad():
        return model(torch.tensor(PROMPT)).last_hidden_state[0].numpy()


@pytest.mark.parametrize("name", [*NAMES, *ENCODERS])
def test_no_setting_that_matters_is_passed_over(tmp_path, name):
    kind, config = (getattr(transformers, name), {}) if name in ENCODERS else CASES[name]
    model = make(tmp_path, kind, **config)
    weights, settings = model.state_dict(), model.config.to_dict()
    folder = CheckpointFolder(tmp_path)
    source, wanted = folder.tensors(), says(model)
    saved = json.loads((tmp_path / "config.json").read_text())
    written = file_of(source, folder.config)
    assert written is not None
    passed_over = []
    for change in changes(settings):
        changed = CheckpointConfig(saved | change, folder.config.path)
        if file_of(source, changed) != written:
            continue
        try:
            other = type(model)(type(model.config)(**(saved | change), attn_implementation="eager")).eval()
            other.load_state_dict(weights)
            got = says(other)
        except Exception:  # the original does not take it either
            continue
        if not np.abs(got - wanted).max() < 1e-4:
            passed_over.append(change)
    assert passed_over == []
