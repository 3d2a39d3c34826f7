"""A model that says what the last «...» of its prompt holds, with a real tokenizer and a real chat template."""

from __future__ import annotations

import numpy as np

from halfbyte.runtime.llm import LLM
from halfbyte.runtime.sampling.params import SamplingParams
from halfbyte.text import ChatTemplate, build_tokenizer
from tests.runtime.toy import ToyExecutable, toy_engine
from tests.text.tiny_vocabularies import CONTROL, byte_bpe

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for t in m.tool_calls or [] %}<tool_call>{{ t.function.name }} {{ t.function.arguments.a }}</tool_call>"
    "{% endfor %}"
    "<|im_end|>\n{% endfor %}{% if tools %}{{ tools | length }} tools{% endif %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
THINKS = CHATML.replace(
    "assistant\n{% endif", "assistant\n{{ '<think>' if enable_thinking else '<think></think>' }}\n{% endif"
)
END = CONTROL.index("<|im_end|>")


class Parrot(ToyExecutable):
    """Ends where there is nothing to say."""

    def __init__(self, tokenizer) -> None:
        super().__init__(n_pages=600, page_len=16)
        self._tokenizer = tokenizer

    def run(self, batch, logits) -> None:
        self.before_run(batch)
        self._kv[batch.slots] = batch.ids
        for row, t in enumerate(batch.logit_rows):
            history = self._history(batch, batch.seq_of[t])[: batch.positions[t] + 1]
            logits[row] = -np.arange(logits.shape[1]) / 100
            logits[row, self._next(history.tolist())] = 50

    def _next(self, history: list[int]) -> int:
        text = self._tokenizer.decode(history, special=True)
        script = text.rpartition("«")[2].partition("»")[0] if "«" in text else ""
        ids = [*self._tokenizer.encode(script, special=True, bos=False), END]
        said = max(k for k in range(len(ids)) if history[len(history) - k :] == ids[:k])
        return ids[said]


def parrot(template: str = CHATML, control: tuple[str, ...] = ()) -> LLM:
    """`control`: more control tokens."""
    metadata = byte_bpe()
    tokens, types = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
    metadata["tokenizer.ggml.tokens"] = [*tokens, *control]
    metadata["tokenizer.ggml.token_type"] = [*types, *[3] * len(control)]
    metadata["tokenizer.chat_template"] = template
    tokenizer = build_tokenizer(metadata)
    engine = toy_engine(Parrot(tokenizer), context=4000, vocab_size=tokenizer.vocab_size, eog_ids=tokenizer.eog_ids)
    chat = ChatTemplate.from_metadata(metadata, tokenizer)
    return LLM(engine, tokenizer, chat, defaults=SamplingParams(), spec=None, metadata={})


def say(text: str, *before: dict) -> list[dict]:
    """Messages that a parrot answers with `text`."""
    return [*before, {"role": "user", "content": f"say «{text}»"}]
