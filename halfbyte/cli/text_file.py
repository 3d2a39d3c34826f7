"""A text that an option names as a file."""

from __future__ import annotations

from pathlib import Path

from ..errors import ConfigError, FormatError


def read_text(path: str, option: str = "--file") -> str:
    """The text of a file that `option` names, line ends as they are; never empty. Raises `ConfigError` where
    there is none, `FormatError` for other bytes.

    Bytes that are no UTF-8 are refused instead of replaced: figures would be of another text than the file's.
    """
    if not path:
        raise ConfigError(f"the text's file has no name; {option} takes the path of a text file", key="file")
    try:
        data = Path(path).expanduser().read_bytes()
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"{path}: cannot be read: {reason}; {option} takes the path of a text file") from error
    if not data:
        raise ConfigError(f"{path}: the text is empty", key="file")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError("is no UTF-8 text: convert it first", path=path, offset=error.start) from None
