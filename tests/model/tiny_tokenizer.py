"""A byte-level BPE vocabulary of the smallest kind: 256 bytes, a few merges, three control tokens, filling."""

from __future__ import annotations

import numpy as np

from halfbyte.formats import Typed

MERGES = ("t h", "th e", "Ġ t", "Ġ a", "i n", "e r", "Ġ the", "o n", "a n", "an d", "Ġa n", "in g")
CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
NORMAL, CONTROL_TYPE, UNUSED = 1, 3, 5


def byte_characters():
    """GPT-2's letter for each byte: itself where it prints, else one of 256, 257, ..."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    spare = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(spare)) for byte in range(256)]


def tokenizer_metadata(n_vocab):
    merged = [merge.replace(" ", "") for merge in MERGES]
    tokens = [*byte_characters(), *merged, *CONTROL]
    assert n_vocab >= len(tokens), f"the vocabulary needs {len(tokens)} tokens"
    types = [NORMAL] * (256 + len(merged)) + [CONTROL_TYPE] * len(CONTROL) + [UNUSED] * (n_vocab - len(tokens))
    tokens += [f"<unused{i}>" for i in range(n_vocab - len(tokens))]
    control = 256 + len(merged)
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": Typed(np.asarray(types, np.int32), "i32"),
        "tokenizer.ggml.merges": list(MERGES),
        "tokenizer.ggml.bos_token_id": control,
        "tokenizer.ggml.eos_token_id": control + 2,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": TEMPLATE,
    }
