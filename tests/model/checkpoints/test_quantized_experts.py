"""gpt-oss with its experts in MXFP4: the blocks of the file are those of the checkpoint, and so are the answers."""

from __future__ import annotations

import json

import numpy as np
import pytest
import safetensors.torch
import torch
from gguf.quants import MXFP4 as GGUF_MXFP4

from halfbyte.formats import open_gguf
from halfbyte.model import bind
from halfbyte.model.kv_types import KvTypes
from halfbyte.model.reference import ReferenceExecutable
from tests.model.batches import run_side_by_side
from tests.model.checkpoints.converted import convert
from tests.model.checkpoints.tiny_checkpoint import SIZES, answers, make, prompts

E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
PROMPTS = prompts([40, 23])
CONFIG = {"head_dim": 16, "sliding_window": 20, "num_local_experts": 3, "num_experts_per_tok": 2}


def quantized(parameter, generator):
    """Random blocks and scales for experts [E, M, N], which then have those values."""
    experts, columns, rows = parameter.shape
    blocks = torch.randint(0, 256, (experts, rows, columns // 32, 16), generator=generator, dtype=torch.uint8)
    scales = torch.randint(119, 124, (experts, rows, columns // 32), generator=generator, dtype=torch.uint8)
    codes = torch.stack([blocks & 15, blocks >> 4], dim=-1).flatten(-2)
    values = torch.ldexp(E2M1[codes.long()], scales.int()[..., None] - 127).flatten(-2)
    parameter.copy_(values.transpose(1, 2))
    return blocks, scales


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A folder with quantized experts, what they were made of, and the answers of the original."""
    folder, generator = tmp_path_factory.mktemp("gpt-oss"), torch.Generator().manual_seed(0)
    model = make(folder, "GptOss", **CONFIG)
    stored = safetensors.torch.load_file(folder / "model.safetensors")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("_proj") and ".experts." in name:
                del stored[name]
                stored[f"{name}_blocks"], stored[f"{name}_scales"] = quantized(parameter, generator)
    safetensors.torch.save_file(stored, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
    (folder / "config.json").write_text(json.dumps(config))
    return open_gguf(convert(folder)), dict(model.named_parameters()), answers(model, PROMPTS)


@pytest.mark.parametrize(("name", "half"), [("ffn_gate_exps", 0), ("ffn_up_exps", 1), ("ffn_down_exps", None)])
def test_blocks_mean_what_they_did(checkpoint, name, half):
    file, parameters, _ = checkpoint
    tensor = f"blk.1.{name}.weight"
    assert file.tensors[tensor].format.name == "mxfp4"
    stem = "model.layers.1.mlp.experts."
    wanted = parameters[stem + ("down_proj" if half is None else "gate_up_proj")].detach().transpose(1, 2).numpy()
    data = file.tensor_data(tensor).reshape(-1, 17)
    got = GGUF_MXFP4.dequantize_rows(data).reshape(-1)
    np.testing.assert_array_equal(got, (wanted if half is None else wanted[:, half::2]).reshape(-1))


def test_the_answers_are_those_of_the_original(checkpoint):
    file, _, wanted = checkpoint
    model = bind(file)
    runner = ReferenceExecutable(model.program, model.weights, n_pages=12, page_len=8, kv=KvTypes("f32", "f32"))
    for got, logits in zip(run_side_by_side(runner, PROMPTS, SIZES["vocab_size"]), wanted, strict=True):
        assert 0.3 < np.std(logits) < 30
        assert np.abs(got - logits).max() < 1e-4
