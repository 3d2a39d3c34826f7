"""`Conversation`: the messages so far and how answers to them are drawn."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError

if TYPE_CHECKING:
    from ..runtime.llm import LLM
    from ..runtime.timings import Timings


@dataclass
class Conversation:
    """`settings` go to the library with every question; `timings` are those of the last whole answer."""

    llm: LLM
    settings: dict[str, Any]
    system: str = ""
    turns: list[dict[str, str]] = field(default_factory=list)
    timings: Timings | None = None
    finish_reason: str | None = None

    def ask(self, question: str) -> Generator[str, None, None]:
        """The answer piece by piece. Closing early keeps what came; an error takes the question back."""
        self.turns.append({"role": "user", "content": question})
        self.timings = self.finish_reason = None
        pieces: list[str] = []
        try:
            with self.llm.stream_chat(self.messages(), **self.settings) as stream:
                for event in stream:
                    pieces.append(event.text)
                    self.timings, self.finish_reason = event.timings, event.finish_reason
                    yield event.text
        finally:
            if pieces:
                self.turns.append({"role": "assistant", "content": "".join(pieces)})
            else:
                self.turns.pop()

    def messages(self) -> list[dict[str, str]]:
        """What the chat template gets."""
        system = [{"role": "system", "content": self.system}] if self.system else []
        return system + self.turns

    def reset(self) -> None:
        """Forget all turns; the system prompt stays."""
        self.turns.clear()
        self.timings = None

    def set(self, assignment: str) -> str:
        """Take `name=value` over into the settings; returns the name. Raises `ConfigError` for a wrong one."""
        from .settings import setting

        name, value = setting(assignment, "max_tokens")
        if name == "max_tokens" and value < 1:
            raise ConfigError("max_tokens must be 1 or more", key=name)
        self.settings[name] = value
        return name
