"""`Room`: where a person chats: the conversation, its branches, and the model behind it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from . import terminal
from .answer_view import show
from .conversation import Conversation, Piece
from .speed import speed_line
from .turn import Turn

if TYPE_CHECKING:
    from ..runtime.llm import LLM

FIRST = "main"


class Room:
    """`prefill` stands on the next line to be typed; `load` brings another model."""

    def __init__(self, conversation: Conversation, model: str, load: Callable[[str], LLM]) -> None:
        self.conversation = conversation
        self.model = model
        self.open = True
        self.prefill = ""
        self.branch = FIRST
        self.branches: dict[str, list[Turn]] = {FIRST: []}
        self._load = load

    def ask(self, question: str) -> None:
        """Print the answer to a question."""
        self.answer(self.conversation.ask(question))

    def answer(self, pieces: Generator[Piece, None, None]) -> None:
        """Print an answer, and what it took. An interruption keeps what came."""
        with closing(pieces):
            show(pieces)
        talk = self.conversation
        if talk.timings is not None:
            terminal.note(speed_line(talk.timings))
        if talk.finish_reason == "length":
            terminal.note("[cut: --max-tokens is reached or the context is full]")

    def switch(self, name: str) -> bool:
        """Go on in the branch `name`; whether it is a new one, which begins as the conversation is."""
        self.branches[self.branch] = self.conversation.turns[:]
        new = name not in self.branches
        self.conversation.turns = self.branches.setdefault(name, self.conversation.turns)[:]
        self.branch = name
        return new

    def change_model(self, name: str) -> None:
        """Go on with another model; the one before is kept where it cannot be loaded."""
        llm = self._load(name)
        self.conversation.llm.close()
        self.conversation.llm, self.model = llm, name
        self.conversation.template = {}

    @property
    def status(self) -> str:
        """The line below what is typed: the model, how full its context is, how fast it was."""
        talk = self.conversation
        share = talk.context_used / max(talk.llm.context, 1)
        parts = [Path(self.model).name, f"context {talk.context_used}/{talk.llm.context} ({share:.0%})"]
        if talk.timings is not None:
            parts.append(f"{talk.timings.decode_tok_s:.1f} tok/s")
        return "  ".join(parts if self.branch == FIRST else [*parts, f"branch {self.branch}"])
