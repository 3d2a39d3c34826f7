"""`halfbyte pull`: fetch a model."""

from __future__ import annotations

from argparse import Namespace

from . import terminal
from .command import Command, Option
from .options import MODEL
from .progress import Bar

CHECK = Option("--check", bool, "Compare a kept model with the hash taken when it was fetched")
AGAIN = Option("--again", bool, "Fetch even if it is kept already")


def run(values: Namespace) -> int:
    """Print the path of the fetched file."""
    from ..hub import resolve, verify

    with Bar() as bar:
        path = verify(values.model, bar) if values.check else resolve(values.model, bar, refresh=values.again)
    terminal.line(str(path))
    return 0


COMMAND = Command(
    "pull",
    about="Fetch a model, prove its size and SHA-256, and print its path. It is kept in your cache folder "
    "(HALFBYTE_CACHE moves it) and used by every command from then on.",
    example="halfbyte pull smollm2-135m",
    run=run,
    arguments=(MODEL,),
    options=(CHECK, AGAIN),
)
