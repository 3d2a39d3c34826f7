"""What the converter writes, llama.cpp reads and answers alike; runs where llama-cpp-python is installed."""

import numpy as np
import pytest

from halfbyte.tools.convert.conversion import Conversion, ConversionChoices
from tests.model.checkpoints.test_longrope import CASES as LONGROPE
from tests.model.checkpoints.test_same_answers import CAPS, CASES
from tests.model.checkpoints.tiny_checkpoint import answers, make, prompts
from tests.tools.convert import tiny_tokenizers

llama_cpp = pytest.importorskip("llama_cpp")

TOLERANCE = 1e-4
WINDOWED = {"mistral", "ministral", "qwen2-window", "qwen3-window", "phi3"}
"""It has windows for some architectures only."""
SCALED = {"gemma3-scale", "gemma2", "gemma2-everywhere"}
"""It takes scales of scores from the size of heads alone, and knows the usual layers with a window."""
OURS = WINDOWED | SCALED | {"qwen3moe-mixed", "smollm3-other", "gpt-oss"}
"""What it does not know, or refuses: layers of two kinds, YaRN that is not cut to whole pairs."""
TABLES = {"gemma3": 5e-3, "gemma2-usual": 5e-3}
"""It takes GELU from a table of halves."""
ALL = {name: case for name, case in CASES.items() if name not in OURS}
ALL["gemma2-usual"] = ("Gemma2", CAPS | {"head_dim": 24, "query_pre_attn_scalar": 24, "sliding_window": 20})
ALL |= {f"{name}-longrope": case for name, case in LONGROPE.items()}


@pytest.mark.parametrize("name", list(ALL))
def test_llama_cpp_answers_as_the_original(tmp_path, name):
    kind, config = ALL[name]
    tokenizer = tiny_tokenizers.byte_level()
    model = make(tmp_path, kind, **config, vocab_size=tokenizer.get_vocab_size())
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    # A name with "phi3" in it makes llama.cpp look for tokens of that family.
    Conversion(tmp_path, ConversionChoices("f32", {"general.name": "tiny"})).write(tmp_path / "tiny.gguf")
    ids = prompts([70])[0].tolist()
    runner = llama_cpp.Llama(
        str(tmp_path / "tiny.gguf"), n_ctx=256, n_batch=256, logits_all=True, verbose=False, type_k=0, type_v=0
    )
    runner.eval(ids)
    got, wanted = runner.scores[: len(ids)].copy(), answers(model, [ids])[0]
    runner.close()
    assert np.abs(got - wanted).max() < TABLES.get(name, TOLERANCE)
