"""`library_errors`: whatever the Rust side of tokenizers raises, as an error of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..errors import HalfbyteError


@contextmanager
def library_errors(make: Callable[[str], HalfbyteError]) -> Iterator[None]:
    """Raise `make(reason)` where the block fails inside the library.

    The library panics where a pattern backtracks without end or a table is damaged. A panic is no `Exception`, and its
    class has no name that could be imported.
    """
    try:
        yield
    except HalfbyteError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise make(str(error)) from error
