"""Whatever is wrong with tensors and tokens: a typed error names them and the file, and nothing is left."""

from __future__ import annotations

import json

import numpy as np
import pytest

from halfbyte.errors import FormatError
from halfbyte.tools.convert.tensor_source import DTYPES
from tests.tools.convert.broken import WEIGHTS, Q, refused, with_config, with_tensors
from tests.tools.convert.tiny_folder import tensors


class TestTensors:
    def test_that_are_missing(self, folder):
        refused(with_tensors(folder, {}, Q, "model.norm.weight"), FormatError, rf"checkpoint: 2 tensors.*norm.*{Q}")

    def test_that_nobody_uses(self, folder):
        extra = {"model.layers.0.self_attn.extra.weight": np.ones(3, np.float32)}
        refused(with_tensors(folder, extra), FormatError, rf"{WEIGHTS}.*1 tensor.*extra")

    @pytest.mark.parametrize("dtype", ["I64", "I32", "I8", "U8", "F8_E4M3"])
    def test_of_a_type_that_is_no_weight(self, folder, dtype):
        array = np.ones((64, 64), DTYPES[dtype])
        refused(with_tensors(folder, {Q: (dtype, array)}), FormatError, rf"{WEIGHTS}.*{Q}.*{dtype}")

    @pytest.mark.parametrize("shape", [(), (64,), (64, 65), (65, 64), (32, 128), (2, 64, 64), (0, 64), (64, 0)])
    def test_of_a_shape_that_does_not_fit(self, folder, shape):
        refused(with_tensors(folder, {Q: np.ones(shape, np.float32)}), FormatError, "checkpoint.*q")

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("dtype", [np.float32, np.float16])
    def test_with_weights_that_are_no_numbers(self, folder, bad, dtype):
        weights = np.ones((64, 64), dtype)
        weights[40, 3] = bad
        refused(with_tensors(folder, {Q: weights}), FormatError, rf"{WEIGHTS}.*{Q}.*row 40, column 3")

    def test_with_weights_that_are_no_numbers_in_bf16(self, folder):
        weights = np.full((64, 64), 0x3F80, np.uint16)
        weights[40, 3] = 0x7FC0
        refused(with_tensors(folder, {Q: ("BF16", weights)}), FormatError, rf"{WEIGHTS}.*{Q}.*row 40, column 3")

    def test_tied_and_yet_different(self, folder):
        refused(with_config(folder, tie_word_embeddings=True), FormatError, r"config\.json.*lm_head.*embed_tokens")

    def test_that_are_quantized_though_the_config_does_not_say_so(self, folder):
        extra = {Q.replace("weight", "qweight"): np.ones((8, 64), np.int32)}
        refused(with_tensors(folder, extra, Q), FormatError, rf"{WEIGHTS}.*q_proj\.qweight")


class TestTokenizer:
    def test_that_is_missing(self, folder):
        (folder / "tokenizer.json").unlink()
        refused(folder, FormatError, r"checkpoint.*tokenizer\.json")

    def test_with_more_tokens_than_the_embedding_has_rows(self, folder):
        few = {name: tensors()[name][:100] for name in ("model.embed_tokens.weight", "lm_head.weight")}
        with_tensors(with_config(folder, vocab_size=100), few)
        refused(folder, FormatError, r"tokenizer\.json")

    @pytest.mark.parametrize(
        "tree",
        [
            {},
            {"model": None},
            {"model": {"type": "BPE"}},
            {"model": {"type": "BPE", "vocab": [], "merges": {}}},
            {"model": {"type": "BPE", "vocab": {"a": "b"}, "merges": []}},
            {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "b"]]}},
            {"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}},
            {"model": {"type": "BPE", "vocab": {"a": 2**62}, "merges": []}},
            {"added_tokens": 7, "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}},
        ],
    )
    def test_that_makes_no_sense(self, folder, tree):
        (folder / "tokenizer.json").write_text(json.dumps(tree))
        refused(folder, FormatError, r"tokenizer\.json")

    def test_with_a_model_that_is_unknown(self, folder):
        tree = json.loads((folder / "tokenizer.json").read_text())
        (folder / "tokenizer.json").write_text(json.dumps(tree | {"model": {"type": "Foo"}}))
        refused(folder, (FormatError), r"tokenizer\.json")

    def test_with_a_chat_template_that_is_no_text(self, folder):
        (folder / "chat_template.jinja").write_bytes(b"\xff\xfe\xff")
        refused(folder, FormatError, r"chat_template\.jinja")
