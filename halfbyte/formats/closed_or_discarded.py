"""`ClosedOrDiscarded`: what `with` means for whoever writes a file that is whole or not there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class ClosedOrDiscarded(ABC):
    """Closed at the end of the block; discarded where an exception leaves it."""

    @abstractmethod
    def close(self) -> None:
        """Give what was written its name."""

    @abstractmethod
    def discard(self) -> None:
        """Leave nothing behind."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()
