"""`Fields`: typed reads of tokenizer metadata that gather every problem before one error is raised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError

_SHOWN = 8


class Fields:
    """Reads metadata; a wrong or missing value is noted in `problems` and a harmless one returned instead."""

    def __init__(self, metadata: Mapping[str, object]) -> None:
        self._metadata = metadata
        self.problems: list[str] = []

    def problem(self, key: str, text: str) -> None:
        """Note that the value of `key` is wrong."""
        self.problems.append(f"{key}: {text}")

    def raise_problems(self) -> None:
        """Raise one `FormatError` for everything noted so far."""
        if self.problems:
            more = len(self.problems) - _SHOWN
            tail = [f"and {more} more"] if more > 0 else []
            listing = "; ".join(self.problems[:_SHOWN] + tail)
            raise FormatError(f"the tokenizer metadata is damaged: {listing}. Fetch or convert the file again")

    def text(self, key: str, default: str) -> str:
        """A string, or `default` where the key is absent."""
        value = self._metadata.get(key, default)
        if isinstance(value, str):
            return value
        self.problem(key, f"wants text, not {type(value).__name__}")
        return default

    def flag(self, key: str, default: bool) -> bool:
        """A truth value, or `default` where the key is absent."""
        value = self._metadata.get(key, default)
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
        self.problem(key, f"wants true or false, not {value!r}")
        return default

    def token_id(self, key: str, vocab_size: int, default: int | None) -> int | None:
        """An id inside the vocabulary; where the key is absent `default`, if the vocabulary has it."""
        value = self._metadata.get(key)
        if value is None:
            return default if default is not None and default < vocab_size else None
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            self.problem(key, f"wants a token id, not {value!r}")
            return None
        if 0 <= value < vocab_size:
            return int(value)
        self.problem(key, f"is {value}, but the vocabulary has ids 0 to {vocab_size - 1}")
        return None

    def strings(self, key: str, *, required: bool) -> list[str]:
        """All strings of an array; an empty list where it is absent and not `required`."""
        value: Any = self._metadata.get(key)
        if value is None:
            if required:
                self.problem(key, "is missing")
            return []
        if isinstance(value, str) or not isinstance(value, Sequence):
            self.problem(key, f"wants an array of strings, not {type(value).__name__}")
            return []
        if hasattr(value, "tolist"):
            # An array of the file's own holds nothing but strings, and a look at a quarter million takes its time.
            texts: list[str] = value.tolist()
            return texts
        if not all(isinstance(text, str) for text in value):
            self.problem(key, "wants strings only")
            return []
        return list(value)

    def integers(self, key: str) -> NDArray[np.int64]:
        """All integers of an array, none where the key is absent."""
        array = np.asarray(self._metadata.get(key, np.zeros(0, np.int64)))
        if array.ndim == 1 and (array.dtype.kind in "iu" or not len(array)):
            return array.astype(np.int64)
        self.problem(key, f"wants an array of integers, not {array.dtype} with {array.ndim} dimensions")
        return np.zeros(0, np.int64)

    def numbers(self, key: str, length: int, dtype: type[np.generic]) -> NDArray[Any] | None:
        """`length` finite numbers as `dtype`, or None where the key is absent."""
        value = self._metadata.get(key)
        if value is None:
            return None
        array = np.asarray(value)
        wanted = "iu" if np.issubdtype(dtype, np.integer) else "iuf"
        if array.ndim != 1 or array.dtype.kind not in wanted:
            self.problem(key, f"wants an array of numbers, not {array.dtype} with {array.ndim} dimensions")
        elif len(array) != length:
            self.problem(key, f"has {len(array)} entries for {length} tokens")
        elif not np.all(np.isfinite(array)):
            self.problem(key, "holds values that are not finite")
        else:
            return array.astype(dtype)
        return None
