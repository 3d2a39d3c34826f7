"""Metadata that every file has: what the model is called, and how its makers sample from it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .checkpoint_folder import CheckpointFolder

_SAMPLING = {
    "temperature": "temp",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "repetition_penalty": "penalty_repeat",
}
"""Names in `generation_config.json` to those of `general.sampling.*`."""


def general_metadata(folder: CheckpointFolder, arch: str, name: str | None = None) -> dict[str, object]:
    """`general.*`; sampling settings only where they are numbers that mean something."""
    given = str(folder.config.given.get("_name_or_path") or "").rstrip("/").rpartition("/")[2]
    name = given or name or folder.path.resolve().name
    metadata: dict[str, object] = {
        "general.architecture": arch,
        "general.type": "model",
        "general.name": _readable(name),
    }
    return metadata | sampling_metadata(folder.generation_config())


def sampling_metadata(settings: Mapping[str, Any]) -> dict[str, object]:
    """What the makers recommend; nothing where they say that no drawing is wanted."""
    if settings.get("do_sample") is False:
        return {}
    found: dict[str, object] = {}
    for theirs, ours in _SAMPLING.items():
        value = settings.get(theirs)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e6:
            continue
        found[f"general.sampling.{ours}"] = int(value) if ours == "top_k" else float(value)
    return found


def _readable(name: str) -> str:
    return re.sub(r"[-_]+", " ", name).strip() or "model"
