"""From the MODEL argument to a loaded model, with progress."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from .loading import loading
from .progress import Bar

if TYPE_CHECKING:
    from ..runtime.llm import LLM


def locate(reference: str) -> Path:
    """The model's file, fetched if need be."""
    from ..hub import resolve

    with Bar() as bar:
        return resolve(reference, bar)


def load(values: Namespace) -> LLM:
    """The model that `values.model` names, loaded as `--context`, `--threads` and `--load` say."""
    import halfbyte

    options = loading(values.load or [])
    with Bar() as bar:
        return halfbyte.load(values.model, context=values.context, threads=values.threads, progress=bar, **options)
