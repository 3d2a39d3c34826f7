"""From typed words to values, by argparse: it starts in 3 ms, where friendlier parsers take 300."""

from __future__ import annotations

import argparse
import math
import shutil
import textwrap
from collections.abc import Callable, Sequence
from typing import NoReturn

from ..errors import nearest
from .command import Argument, Command, Option

COLUMN = 26
WIDEST = 110


class UsageError(Exception):
    """The words do not make a command; exit code 2."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def parse(command: Command, words: Sequence[str]) -> argparse.Namespace | None:
    """The values of a command's arguments and options; None where help was asked for. Raises `UsageError`."""
    parser = _Parser(prog=f"halfbyte {command.name}", add_help=False, allow_abbrev=False)
    parser.add_argument("-h", "--help", action="store_true")
    for argument in command.arguments:
        # All optional to argparse: it counts missing ones before it looks at --help.
        parser.add_argument(argument.name.lower(), nargs="*" if argument.many else "?", default=argument.default)
    for option in command.every_option:
        flags = [flag for flag in (option.short, option.flag) if flag]
        if option.kind is bool:
            parser.add_argument(*flags, action="store_true")
        else:
            action = "append" if option.many else "store"
            parser.add_argument(*flags, action=action, type=_reader(option), default=option.default, metavar="VALUE")
    values, extra = parser.parse_known_intermixed_args(words)
    if values.help:
        return None
    if extra:
        raise UsageError(_unexpected(extra[0], command))
    missing = [a.name for a in command.arguments if a.required and getattr(values, a.name.lower()) is None]
    if missing:
        raise UsageError(f"{' and '.join(missing)} missing; for example: {command.example}")
    return values


def _reader(option: Option) -> Callable[[str], object]:
    """Reads one value; argparse puts the option's name before the message."""

    def read(text: str) -> object:
        try:
            value = option.kind(text)
        except ValueError:
            value = math.nan
        low, high = option.low, option.high
        fits = low is None or (low <= value and (high is None or value <= high) and not math.isinf(value))
        if not fits:
            kind = "a whole number" if option.kind is int else "a number"
            raise argparse.ArgumentTypeError(f"{text!r} is not {kind}, {option.range}")
        return value

    return read


def _unexpected(word: str, command: Command) -> str:
    if not word.startswith("-") or word == "-":
        return f"unexpected {word!r}{_place_of_texts(command)}"
    flag = word.partition("=")[0]
    setting = flag.removeprefix("--").replace("-", "_")
    for option, rows in (("--set", command.settings()), ("--load", command.loading())):
        if setting in dict(rows):
            return f"{flag} is a setting: write {option} {setting}=VALUE"
    flags = [option.flag for option in command.every_option] + ["--help", "--debug"]
    return f"unknown option {flag}{nearest(flag, flags)}; put -- before a text that starts with a dash"


def _place_of_texts(command: Command) -> str:
    """What a word too many most likely was meant for."""
    if any(option.flag == "--file" for option in command.options):
        return f"; the file of a text stands behind --file, for example: {command.example}"
    takes_text = any(argument.name in ("PROMPT", "TEXT") for argument in command.arguments)
    return "; put a text of several words in quotes" if takes_text else f"; for example: {command.example}"


def help_text(command: Command) -> str:
    """The whole help of a command: an example that works, what it does, and every argument and option."""
    usage = " ".join(["halfbyte", command.name, "[OPTIONS]", *map(_placeholder, command.arguments)])
    rows = [(argument.name, argument.help) for argument in command.arguments]
    options = [(_flags(option), option.help) for option in command.options] + [("-h, --help", "Show this text")]
    parts = [f"Example: {command.example}", f"Usage:   {usage}", _wrapped(command.about)]
    if rows:
        parts.append("Arguments:\n" + table(rows))
    parts.append("Options:\n" + table(options))
    for title, group in (("What the answer must be", command.form), ("With an NVIDIA GPU", command.gpu)):
        if group:
            parts.append(f"{title}:\n" + table([(_flags(option), option.help) for option in group]))
    for option, given in (("--set", command.settings()), ("--load", command.loading())):
        if given:
            parts.append(f"Settings, for {option}:\n" + table(given))
    return "\n\n".join(parts)


def _placeholder(argument: Argument) -> str:
    name = f"{argument.name}..." if argument.many else argument.name
    return name if argument.required else f"[{name}]"


def _flags(option: Option) -> str:
    flags = ", ".join(flag for flag in (option.short, option.flag) if flag)
    return flags if option.kind is bool else f"{flags} {'TEXT' if option.kind is str else 'N'}"


def _width() -> int:
    return max(60, min(WIDEST, shutil.get_terminal_size().columns))


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _width())


def table(rows: Sequence[tuple[str, str]]) -> str:
    """Two aligned columns, the second wrapped."""
    lines = []
    for left, right in rows:
        body = textwrap.wrap(right, _width() - COLUMN) or [""]
        head = f"  {left:<{COLUMN - 3}} "
        if len(head) > COLUMN:
            lines.append(head.rstrip())
            head = " " * COLUMN
        lines += [head + body[0], *(" " * COLUMN + line for line in body[1:])]
    return "\n".join(lines)
