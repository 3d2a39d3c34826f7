"""What a model is for: each loader says which one to take instead."""

from __future__ import annotations

from os import PathLike

from ..errors import UnsupportedError
from ..model.program import Program


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
