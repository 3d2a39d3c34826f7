"""`Matcher`: how far one sequence has come in its grammar."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import RequestError
from .mask import Mask

if TYPE_CHECKING:
    from .grammar import Grammar


class Matcher:
    """Says what may come next. One thread at a time may use it; masks are made by another while a step runs."""

    def __init__(self, grammar: Grammar, inner: Any) -> None:
        self._grammar = grammar
        self._inner = inner
        self._state = grammar.states.root
        self._coming: Future[NDArray[np.uint32]] | None = None
        self.ended = False

    @property
    def grammar(self) -> Grammar:
        """What it follows."""
        return self._grammar

    def fork(self) -> Matcher:
        """One that stands here and goes its own way."""
        self._wait()
        twin = Matcher(self._grammar, self._inner.deep_copy())
        twin._state, twin.ended = self._state, self.ended
        return twin

    def prepare(self) -> None:
        """Begin to find the mask, if it is not known."""
        if self._state.mask is None and self._coming is None and not self.ended:
            self._coming = self._grammar.begin(self._bits)

    def mask(self) -> Mask:
        """Which tokens may come next; tokens that end an answer are among them where it may end."""
        state, coming = self._state, self._coming
        self._coming = None
        # One that has not begun is not waited for; one that has must end before the inner matcher moves on.
        bits = None if coming is None or coming.cancel() else coming.result()
        if state.mask is None:
            state.mask = self._grammar.states.mask(self._bits() if bits is None else bits)
        return state.mask

    def forced(self) -> tuple[int, ...]:
        """The tokens of which nothing else may come next."""
        state = self._state
        if state.forced is None:
            self._wait()
            state.forced = tuple(self._inner.compute_ff_tokens()) if not self.ended else ()
        return state.forced

    def accept(self, token: int) -> None:
        """Go on by a token that the mask allows. Raises `RequestError` where the grammar is too much to follow."""
        if self.ended:
            return
        self._wait()
        if not self._inner.consume_token(token):
            raise self._too_much()
        self._state = self._grammar.states.follow(self._state, token)
        self.ended = self._inner.is_stopped()

    def _wait(self) -> None:
        """Nobody else may be at the inner matcher."""
        if self._coming is not None:
            self.mask()

    def _bits(self) -> NDArray[np.uint32]:
        bits = np.frombuffer(self._inner.compute_bitmask(), np.uint32)
        if self._inner.is_error():
            raise self._too_much()
        return bits

    def _too_much(self) -> RequestError:
        problem = str(self._inner.get_error()).partition("\n")[0]
        return RequestError(f"the grammar is too much to follow here, a simpler one may do: {problem}")
