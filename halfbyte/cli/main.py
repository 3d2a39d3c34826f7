"""The command table and the border where errors become one line and an exit code."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

from .._version import __version__
from ..errors import HalfbyteError, nearest
from ..registry import Registry
from . import terminal
from .command import Command
from .interruption import noted
from .parser import UsageError, help_text, parse, table

COMMANDS: Registry[Command] = Registry(
    "command",
    __package__,
    {
        "chat": ".chat:COMMAND",
        "generate": ".generate:COMMAND",
        "serve": ".serve:COMMAND",
        "pull": ".pull:COMMAND",
        "inspect": ".inspect:COMMAND",
        "tokenize": ".tokenize:COMMAND",
        "embed": ".embed:COMMAND",
        "bench": ".bench:COMMAND",
        "perplexity": ".perplexity:COMMAND",
        "compare": ".compare:COMMAND",
        "convert": ".convert:COMMAND",
        "quantize": ".quantize:COMMAND",
        "imatrix": ".imatrix:COMMAND",
        "check": ".check:COMMAND",
        "plan": ".plan:COMMAND",
        "doctor": ".doctor:COMMAND",
    },
)

SUMMARY = {
    "chat": "talk with a model",
    "generate": "continue a text",
    "serve": "serve a model over HTTP, as OpenAI's API does",
    "pull": "fetch a model and print its path",
    "inspect": "show what is inside a model file",
    "tokenize": "show the token ids of a text",
    "embed": "make vectors of texts",
    "bench": "measure speed and memory with a model",
    "perplexity": "measure how well a model predicts a text",
    "compare": "show two model files side by side",
    "convert": "make a model file of a Hugging Face checkpoint",
    "quantize": "write a model in fewer bits",
    "imatrix": "measure which columns of a model's matrices count most",
    "check": "compare a model's answers on this machine with those in its file",
    "plan": "tell what a model will take and how fast it will be",
    "doctor": "show what this machine has for running models",
}

OK, FAILED, USAGE, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141


def main(words: Sequence[str] | None = None) -> int:
    """Run one command line; returns its exit code."""
    terminal.prepare()
    given = list(sys.argv[1:] if words is None else words)
    own = given[: given.index("--")] if "--" in given else given
    debug = "--debug" in own
    if debug:
        given.remove("--debug")
    try:
        with noted() as interruption:
            return _run(given)
    except ImportError:
        if not interruption.happened:
            raise
        return INTERRUPTED
    except UsageError as wrong:
        terminal.error(str(wrong))
        named = [word for word in given[:1] if word in COMMANDS]
        terminal.note(f"try: {' '.join(['halfbyte', *named, '--help'])}")
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        terminal.abandon_stdout()
        return PIPE_CLOSED
    except (HalfbyteError, OSError, MemoryError) as wrong:
        if debug:
            traceback.print_exc()
        terminal.error(str(wrong) or "not enough memory")
        return FAILED


def _run(words: Sequence[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        terminal.line(_overview())
        return OK if words else USAGE
    if words[0] in ("-V", "--version"):
        terminal.line(f"halfbyte {__version__}")
        return OK
    if words[0] not in COMMANDS:
        kind = "option" if words[0].startswith("-") else "command"
        hint = nearest(words[0], COMMANDS) or f"; commands: {', '.join(COMMANDS)}"
        raise UsageError(f"unknown {kind} {words[0]!r}{hint}")
    command = COMMANDS[words[0]]
    values = parse(command, words[1:])
    if values is None:
        terminal.line(help_text(command))
        return OK
    return command.run(values)


def _overview() -> str:
    options = [
        ("-h, --help", "Show this text, or a command's own: halfbyte chat --help"),
        ("--version", "Show the version"),
        ("--debug", "Show where an error comes from (with any command)"),
    ]
    return "\n\n".join(
        [
            "Example: halfbyte chat",
            "Usage:   halfbyte COMMAND [OPTIONS] ...",
            "Quantized language models on this computer's CPU.",
            "Commands:\n" + table([(name, SUMMARY[name]) for name in COMMANDS]),
            "Options:\n" + table(options),
        ]
    )
