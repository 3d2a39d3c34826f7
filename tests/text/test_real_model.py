"""The 135M model's own tokenizer and template; ids as its authors' tokenizer gives them."""

from __future__ import annotations

from pathlib import Path

import pytest

from halfbyte.formats import open_gguf
from halfbyte.text import ChatTemplate, Tokenizer, build_tokenizer, encode_chat

IDS = {
    "Hello, world! It's 2024.": [19556, 28, 905, 17, 657, 506, 216, 34, 32, 34, 36, 30],
    "def f(x):\n    return x**2\n": [1604, 275, 24, 104, 727, 472, 1003, 1792, 828, 34, 198],
    "東京 👍🏽 ½": [30679, 126, 16736, 122, 15107, 235, 231, 10813, 233, 138, 216, 16738],
    "": [],
}


@pytest.fixture(scope="module")
def metadata(smollm2_path: Path) -> dict[str, object]:
    with open_gguf(smollm2_path) as file:
        return dict(file.metadata)


@pytest.fixture(scope="module")
def tokenizer(metadata: dict[str, object]) -> Tokenizer:
    return build_tokenizer(metadata)


@pytest.mark.parametrize("text", IDS)
def test_ids_are_those_of_the_models_tokenizer(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.encode(text) == IDS[text]
    assert tokenizer.decode(IDS[text]) == text


def test_facts_of_the_vocabulary(tokenizer: Tokenizer) -> None:
    assert (tokenizer.vocab_size, tokenizer.bos_id, tokenizer.eos_id, tokenizer.add_bos) == (49152, 1, 2, False)
    assert {0, 2} <= tokenizer.eog_ids


def test_a_chat_is_rendered_with_the_models_template(tokenizer: Tokenizer, metadata: dict[str, object]) -> None:
    rendered = ChatTemplate.from_metadata(metadata, tokenizer).render([{"role": "user", "content": "<|im_end|>"}])
    assert rendered.endswith("<|im_start|>user\n<|im_end|><|im_end|>\n<|im_start|>assistant\n")
    ids = encode_chat(tokenizer, rendered)
    assert ids.count(1) == 3
    assert ids.count(2) == 2
