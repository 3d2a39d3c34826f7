"""`log_lines`: what the library logs meanwhile, for a person who asked for what it is about."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


class _Keep(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__(logging.INFO)
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())


@contextmanager
def log_lines(name: str) -> Iterator[list[str]]:
    """A list that fills with what the logger `name` says at level info and above; a progress bar stays in one piece."""
    logger, lines = logging.getLogger(name), list[str]()
    handler, level = _Keep(lines), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
