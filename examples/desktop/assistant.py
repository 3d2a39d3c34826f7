"""`Assistant`: a model behind Qt signals. It loads and generates in threads of its own; the window never waits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter
from typing import Any

from PySide6.QtCore import QObject, Signal

import halfbyte

PIECE_S = 0.03
"""Pieces of text come to the window at most this often: a text widget that is drawn anew takes milliseconds."""
ANSWER = 300
"""Tokens of one answer at most."""


class Assistant(QObject):
    """One model, one answer at a time. All methods are for the GUI's thread and return at once, `close` included."""

    progressed = Signal(str, int, int)
    """What is being done, how much of it is, and of how much: fetching, compiling, packing."""
    loaded = Signal(str)
    piece = Signal(str)
    ended = Signal(str)
    """Why an answer ended: "stop", "length" or "cancelled", and how fast it came."""
    failed = Signal(str)

    def __init__(self, load: Callable[..., halfbyte.LLM] = halfbyte.load, context: int = 2048) -> None:
        super().__init__()
        self._load = load
        self._context = context
        self._llm: halfbyte.LLM | None = None
        self._stream: halfbyte.Stream | None = None
        self._closed = False
        self.busy = False
        """Whether something is under way; no more when its last signal comes."""

    @property
    def ready(self) -> bool:
        """Whether there is a model."""
        return self._llm is not None

    def load(self, model: str) -> None:
        """Bring a model; `loaded` or `failed` follows."""
        self._start(self._bring, model)

    def continue_text(self, text: str) -> None:
        """Go on from the end of `text`."""
        self._start(self._say, lambda llm: llm.stream(self._end_of(llm, text), temperature=0.7, max_tokens=ANSWER))

    def summarise(self, text: str) -> None:
        """Say in a few sentences what `text` is about."""

        def ask(llm: halfbyte.LLM) -> halfbyte.Stream:
            end = llm.detokenize(self._end_of(llm, text))
            question = f"Sum up this text in two or three sentences:\n\n{end}"
            return llm.stream_chat([{"role": "user", "content": question}], temperature=0.3, max_tokens=ANSWER)

        self._start(self._say, ask)

    def cancel(self) -> None:
        """End the answer under way; what came of it stays. The engine is free before its next step."""
        stream = self._stream
        if stream is not None:
            stream.close()

    def close(self) -> None:
        """Cancel, and free the model's memory once its thread has noticed."""
        self._closed = True
        self.cancel()
        llm, self._llm = self._llm, None
        if llm is not None:
            threading.Thread(target=llm.close).start()

    def _start(self, target: Callable[..., None], *given: Any) -> None:
        if self.busy or self._closed:
            return
        self.busy = True
        # A daemon: a model that is still being loaded must not keep a closed app alive.
        threading.Thread(target=self._run, args=(target, *given), daemon=True, name="assistant").start()

    def _run(self, target: Callable[..., None], *given: Any) -> None:
        try:
            target(*given)
        except (halfbyte.HalfbyteError, OSError) as error:
            self._end(self.failed, str(error))

    def _bring(self, model: str) -> None:
        def progress(what: str, done: int, total: int) -> None:
            self._tell(self.progressed, what, done, total)

        llm = self._load(model, context=self._context, progress=progress)
        if self._closed:
            llm.close()
            return
        self._llm = llm
        self._end(self.loaded, str(llm.metadata.get("general.name") or model))

    def _say(self, ask: Callable[[halfbyte.LLM], halfbyte.Stream]) -> None:
        llm = self._llm
        if llm is None:  # closed meanwhile
            return
        started, tokens, held, told, reason = perf_counter(), 0, "", 0.0, "cancelled"
        with ask(llm) as stream:
            self._stream = stream
            try:
                for event in stream:
                    tokens, held, reason = tokens + len(event.ids), held + event.text, event.finish_reason or reason
                    if held and perf_counter() - told > PIECE_S:
                        self._tell(self.piece, held)
                        held, told = "", perf_counter()
            except halfbyte.CancelledError:
                pass
            finally:
                self._stream = None
        if held:
            self._tell(self.piece, held)
        seconds = perf_counter() - started
        self._end(self.ended, f"{reason}: {tokens} tokens, {tokens / seconds:.0f} a second")

    def _end_of(self, llm: halfbyte.LLM, text: str) -> list[int]:
        """As many of the last tokens as leave room for an answer and what a chat puts around a question."""
        room = max(llm.context - ANSWER - 64, 16)
        return llm.tokenize(text)[-room:]

    def _end(self, signal: Any, *given: Any) -> None:
        self.busy = False
        self._tell(signal, *given)

    def _tell(self, signal: Any, *given: Any) -> None:
        """Signals of a thread are delivered in the GUI's; one that is gone hears nothing."""
        if not self._closed:
            signal.emit(*given)
