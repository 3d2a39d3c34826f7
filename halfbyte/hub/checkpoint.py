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

CONFIG, ADAPTER = "config.json", "adapter_config.json"
_ABOUT = ("*.json", "*.jinja", "tokenizer.model", "spiece.model", "*.tiktoken")
_WITHIN = ("*_Pooling/config.json", "additional_chat_templates/*.jinja")
"""What is wanted from folders within a repository."""
_WEIGHTS = {
    CONFIG: ("*.safetensors", "pytorch_model*.bin"),
    ADAPTER: ("adapter_model.safetensors", "adapter_model.bin"),
}
"""By what says what it is: patterns of weights, of which the first that a repository has counts."""


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


def repository_of(reference: str) -> str | None:
    """What a checkpoint in a repository is called, None for one in a folder."""
    return reference.removeprefix("hf:").partition(":")[0].rpartition("/")[2] if reference.startswith("hf:") else None


def _choose(repo: str, names: list[str]) -> list[str]:
    """First what says what it is, then what describes the tokenizer, then the weights."""
    top = [name for name in names if "/" not in name]
    head = CONFIG if CONFIG in top else ADAPTER
    weights = next((found for pattern in _WEIGHTS[head] if (found := fnmatch.filter(top, pattern))), [])
    if head not in top or not weights:
        lacks = CONFIG if head not in top else "weights as safetensors or PyTorch files"
        raise ConfigError(f"{repo} has no {lacks}: it is no checkpoint that can be converted")
    about = [name for pattern in _ABOUT for name in fnmatch.filter(top, pattern)]
    within = [name for pattern in _WITHIN for name in fnmatch.filter(names, pattern)]
    return list(dict.fromkeys([head, *about, *within, *weights]))


def _silent(what: str, done: int, total: int) -> None:
    pass
