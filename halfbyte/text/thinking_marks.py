"""What marks thinking in the output of the models that think."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["thinking", "answer"]
Parts = list[tuple[Kind, str]]
"""Pieces of an output in order, each with its kind."""


class Marks(NamedTuple):
    """Texts around thinking: what opens and closes it, and, where those are others, what does so around an answer."""

    opens: str
    closes: str
    answer_opens: str = ""
    answer_closes: str = ""


THINKING_MARKS: dict[str, Marks] = {
    "think": Marks("<think>", "</think>"),  # Qwen, DeepSeek, SmolLM3, GLM, Nemotron, MiniMax, Hunyuan and others
    "thinking": Marks("<thinking>", "</thinking>"),
    "thought": Marks("<thought>", "</thought>"),  # EXAONE Deep
    "seed": Marks("<seed:think>", "</seed:think>"),  # Seed-OSS
    "mistral": Marks("[THINK]", "[/THINK]"),  # Magistral
    "kimi": Marks("◁think▷", "◁/think▷"),
    "gemma": Marks("<|channel>thought", "<channel|>"),  # Gemma 4
    "cohere": Marks("<|START_THINKING|>", "<|END_THINKING|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    "granite": Marks("<think>", "</think>", "<response>", "</response>"),  # Granite 3.3
}
"""By name. Where a template fits several, the one with more of its texts in it counts."""

CHANNEL = "<|channel|>"
"""In a template it shows the channels of gpt-oss."""

OFF_SWITCHES: dict[str, object] = {
    "enable_thinking": False,
    "thinking": False,
    "enable_reasoning": False,
    "reasoning": False,
    "thinking_budget": 0,
    "reasoning_effort": "none",
}
"""Variables of templates to the value that lets a model answer at once."""
