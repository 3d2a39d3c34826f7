"""`Reasoning`: how a model thinks before it answers, as its chat template shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from .channel_thinking import CONTROLS, ChannelThinking
from .marked_thinking import MarkedThinking
from .thinking_marks import CHANNEL, OFF_SWITCHES, THINKING_MARKS, Marks, Parts


class ThinkingSplitter(Protocol):
    """Parts an output, as it comes, into "thinking" and "answer"."""

    def push(self, text: str) -> Parts:
        """What is certain now."""

    def finish(self) -> Parts:
        """What is still held back, when the model has ended."""


@dataclass(frozen=True)
class Reasoning:
    """`marks` None stands for channels, as gpt-oss has them.

    `off` are variables of the template with which the model answers at once; empty where it knows no such switch.
    """

    marks: Marks | None
    off: Mapping[str, Any] = field(default_factory=dict)

    @property
    def spelled(self) -> tuple[str, ...]:
        """Texts that an output must spell for a splitter, should they be control tokens."""
        return CONTROLS if self.marks is None else tuple(filter(None, self.marks))

    def splitter(self, prompt: str) -> ThinkingSplitter:
        """A splitter for what follows `prompt`, a rendered chat: some templates begin the thinking themselves."""
        if self.marks is None:
            return ChannelThinking()
        return MarkedThinking(self.marks, inside=self.opened(prompt))

    def closed(self, prompt: str) -> bool:
        """Whether a rendered chat ends with thinking that is over: the answer follows at once."""
        return self.marks is not None and prompt.rstrip().endswith(self.marks.closes)

    def opened(self, prompt: str) -> bool:
        """Whether a rendered chat ends within thinking."""
        if self.marks is None:
            return False
        _, opened, tail = prompt.rpartition(self.marks.opens)
        return bool(opened) and not tail.strip()


def find_reasoning(source: str, variables: Iterable[str]) -> Reasoning | None:
    """What a template's source and the variables that it reads show; None where there is no sign of thinking."""
    known = frozenset(variables)
    off = next(({name: value} for name, value in OFF_SWITCHES.items() if name in known), {})
    if CHANNEL in source:
        # gpt-oss thinks always: the least is "low", which is no answer at once.
        return Reasoning(None)
    shown = {name: sum(text in source for text in marks if text) for name, marks in THINKING_MARKS.items()}
    best = max(shown, key=lambda name: shown[name])
    return Reasoning(THINKING_MARKS[best], off) if shown[best] else None
