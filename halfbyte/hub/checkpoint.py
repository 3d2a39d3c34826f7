"""From a checkpoint's reference to a folder on this machine."""

from __future__ import annotations

import fnmatch
import os
from functools import partial
from os import PathLike
from pathlib import Path

from ..errors import ConfigError
from .entry import Progress
from .huggingface import fetch_files, parse_reference
from .store import obtain

CONFIG = "config.json"
_WANTED = ("*.json", "*.jinja", "tokenizer.model", "spiece.model", "*.tiktoken")
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
"""The first kind that a repository has."""


def resolve_checkpoint(reference: str | PathLike[str], progress: Progress | None = None) -> Path:
    """The folder that `reference` names: a path, or `hf:OWNER/REPO`, fetched on first use.

    Raises `ConfigError` for a reference that names nothing, `ResourceError` where the network or the disk fails.
    """
    text = os.fspath(reference)
    if not isinstance(reference, str) or not text.startswith("hf:"):
        return Path(text)
    repo, wanted = parse_reference(text.removeprefix("hf:"))
    if wanted:
        raise ConfigError(f"{text}: a checkpoint is a whole repository; write hf:{repo}")
    fill = partial(fetch_files, repo, partial(_choose, repo))
    return obtain(f"checkpoint:{text}", fill, progress or _silent).path.parent


def _choose(repo: str, names: list[str]) -> list[str]:
    """The config first, then what describes the tokenizer and the weights; nothing from folders within."""
    top = [name for name in names if "/" not in name]
    weights = next((found for pattern in _WEIGHTS if (found := fnmatch.filter(top, pattern))), [])
    if CONFIG not in top or not weights:
        lacks = CONFIG if CONFIG not in top else "weights as safetensors or PyTorch files"
        raise ConfigError(f"{repo} has no {lacks}: it is no checkpoint that can be converted")
    about = [name for pattern in _WANTED for name in fnmatch.filter(top, pattern) if name != CONFIG]
    return list(dict.fromkeys([CONFIG, *about, *weights]))


def _silent(what: str, done: int, total: int) -> None:
    pass
