"""From the MODEL argument to a loaded model, with progress."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import terminal
from .loading import loading
from .options import on_gpu
from .progress import Bar

if TYPE_CHECKING:
    from ..runtime.llm import LLM


def locate(reference: str) -> Path:
    """The model's file, fetched if need be."""
    from ..hub import resolve

    with Bar() as bar:
        return resolve(reference, bar)


def load(values: Namespace, **more: Any) -> LLM:
    """The model that `values.model` names, loaded as `--context`, `--threads`, `--load` and those for a GPU say.

    `more` are other keywords of `halfbyte.load`.
    """
    import halfbyte

    options: dict[str, Any] = {**more, **loading(values.load or []), **on_gpu(values)}
    options |= {"context": values.context, "threads": values.threads}
    if values.gpu_layers is None:
        with Bar() as bar:
            return halfbyte.load(values.model, progress=bar, **options)
    from .log_lines import log_lines

    with log_lines("halfbyte.load") as lines:
        with Bar() as bar:
            llm = halfbyte.load(values.model, progress=bar, **options)
        for line in lines:
            terminal.note(f"[{line}]")
    return llm
