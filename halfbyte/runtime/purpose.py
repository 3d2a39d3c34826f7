"""What a model is for: each loader says which one to take instead."""

from __future__ import annotations

from os import PathLike

from ..errors import UnsupportedError
from ..formats import open_gguf
from ..model import bind
from ..model.program import Program


def embeds(path: str | PathLike[str]) -> bool:
    """Whether a file is an encoder, for `load_embedder`, and not for `load`. Raises as these do."""
    with open_gguf(path) as file:
        return bind(file).program.encoder


def check_writes(program: Program, path: str | PathLike[str]) -> None:
    """Raise `UnsupportedError` for an encoder."""
    if program.encoder:
        raise UnsupportedError(
            f"{path}: this model makes vectors of texts and writes none: use halfbyte.load_embedder or `halfbyte embed`"
        )


def check_embeds(program: Program, path: str | PathLike[str]) -> None:
    """Raise `UnsupportedError` for a model that is no encoder."""
    if not program.encoder:
        raise UnsupportedError(
            f"{path}: this model writes texts and makes no vectors of them: use halfbyte.load or `halfbyte generate`"
        )
