"""`Conversation`: the messages so far and how answers to them are drawn."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError, RequestError
from .turn import Turn

if TYPE_CHECKING:
    from ..runtime.llm import LLM
    from ..runtime.timings import Timings
    from ..text.reasoning import Reasoning

Piece = tuple[str, str]
"""A part of an output: "thinking" or "answer", and its text."""


@dataclass
class Conversation:
    """`settings` go to the library with every question, `template` to the model's template; `timings` are those of the
    last whole answer. `held` stands before the next question.
    """

    llm: LLM
    settings: dict[str, Any]
    system: str = ""
    turns: list[Turn] = field(default_factory=list)
    template: Mapping[str, Any] = field(default_factory=dict)
    held: str = ""
    timings: Timings | None = None
    finish_reason: str | None = None
    context_used: int = 0

    @property
    def reasoning(self) -> Reasoning | None:
        """How the model thinks, if it does."""
        return self.llm.template.reasoning

    def ask(self, question: str) -> Generator[Piece, None, None]:
        """The answer piece by piece. Closing early keeps what came; an error takes the question back."""
        self.turns.append(Turn("user", self.held + question))
        held, self.held = self.held, ""
        try:
            yield from self._answer()
        finally:
            if self.turns[-1].role == "user":
                self.turns.pop()
                self.held = held

    def retry(self) -> Generator[Piece, None, None]:
        """Another answer to the last question. Raises `RequestError` where there is none; the old one is kept then."""
        old = self.turns[:]
        self.turns = old[: self._last_question() + 1]
        try:
            yield from self._answer()
        finally:
            if self.turns[-1].role == "user":
                self.turns = old

    def _answer(self) -> Generator[Piece, None, None]:
        self.timings = self.finish_reason = None
        turn = Turn("assistant", "")
        reasoning = self.reasoning
        ids = self.llm.render(self.messages(), self.template)
        splitter = None if reasoning is None else reasoning.splitter(self.llm.detokenize(ids[-64:], special=True))
        spelled = reasoning.spelled if reasoning else None
        asked = {**self.settings, "chat_template_kwargs": dict(self.template) or None, "spelled": spelled or None}
        try:
            with self.llm.stream_chat(self.messages(), **asked) as stream:
                for event in stream:
                    turn.ids += event.ids
                    self.timings, self.finish_reason = event.timings, event.finish_reason
                    parts = [("answer", event.text)] if splitter is None else splitter.push(event.text)
                    yield from turn.take(parts)
            yield from turn.take(splitter.finish() if splitter else [])
        finally:
            if turn.ids or turn.content:
                turn.prompt_ids = tuple(ids.tolist())
                self.context_used = len(turn.prompt_ids) + len(turn.ids)
                self.turns.append(turn)

    def messages(self) -> list[dict[str, str]]:
        """What the chat template gets."""
        system = [{"role": "system", "content": self.system}] if self.system else []
        return system + [turn.message for turn in self.turns]

    def reset(self) -> None:
        """Forget all turns; the system prompt stays."""
        self.turns = []
        self.timings, self.context_used = None, 0

    def undo(self) -> str:
        """Take the last question and its answer back; returns the question. Raises `RequestError` for none."""
        place = self._last_question()
        question = self.turns[place].content
        self.turns = self.turns[:place]
        self.timings, self.context_used = None, 0
        return question

    def last_answer(self) -> Turn:
        """Raises `RequestError` where there is none."""
        if not (self.turns and self.turns[-1].role == "assistant"):
            raise RequestError("there is no answer yet")
        return self.turns[-1]

    def set(self, assignment: str) -> str:
        """Take `name=value` over into the settings; returns the name. Raises `ConfigError` for a wrong one."""
        from .settings import setting

        name, value = setting(assignment, "max_tokens")
        if name == "max_tokens" and value < 1:
            raise ConfigError("max_tokens must be 1 or more", key=name)
        self.settings[name] = value
        return name

    def _last_question(self) -> int:
        place = next((n for n in reversed(range(len(self.turns))) if self.turns[n].role == "user"), None)
        if place is None:
            raise RequestError("there is no question yet")
        return place
