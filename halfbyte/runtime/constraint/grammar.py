"""`Grammar`: a constraint made ready for one model's vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .matcher import Matcher
from .states import States
from .wish import Constraint


class Grammar:
    """Many sequences may follow it, of one engine; `prototype` is a matcher at its beginning."""

    def __init__(self, constraint: Constraint, prototype: Any, beside: Executor) -> None:
        self.constraint = constraint
        self.states = States()
        self._prototype = prototype
        self._beside = beside

    def matcher(self) -> Matcher:
        """One that stands at the beginning; any thread may ask."""
        return Matcher(self, self._prototype.deep_copy())

    def begin(self, find: Callable[[], NDArray[np.uint32]]) -> Future[NDArray[np.uint32]]:
        """Run `find` beside the engine's thread."""
        return self._beside.submit(find)
