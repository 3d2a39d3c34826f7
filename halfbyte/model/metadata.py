"""`Metadata`: the keys of one architecture in a GGUF file."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike

from ..errors import FormatError
from .typed_values import TypedValues


class Metadata(TypedValues):
    """Reads `<arch>.<key>`. `context` is how many tokens a sequence will have, None for as many as in training."""

    def __init__(
        self,
        values: Mapping[str, object],
        arch: str,
        path: str | PathLike[str] | None = None,
        context: int | None = None,
    ) -> None:
        super().__init__(values, f"{arch}.")
        self.arch = arch
        self.context = context
        self._path = path

    def raise_problems(self) -> None:
        """Raise one `FormatError` naming every key that was noted."""
        if self.problems:
            raise FormatError(
                f"the model's metadata is incomplete or damaged: {self.problem_listing()}. "
                "Fetch or convert the file again",
                path=self._path,
            )
