"""What the checkpoints of encoders have in common: keys of the config, and how sentences are made of states."""

from __future__ import annotations

import json
from pathlib import Path

from ..errors import FormatError
from .checkpoint_config import CheckpointConfig
from .decoder_checkpoint import block_count
from .pooling import POOLINGS

UNUSED = (r"(.*\.)?pooler\..*", r"(.*\.)?position_ids", r"cls\..*", r"lm_head\..*")
"""Heads for training, and lists of whole numbers."""

_MODES = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_lasttoken": "last",
}


def encoder_metadata(config: CheckpointConfig) -> dict[str, object]:
    """Sizes under the names that most configs have."""
    return {
        "context_length": config.integer("max_position_embeddings"),
        "embedding_length": config.integer("hidden_size"),
        "block_count": block_count(config),
        "feed_forward_length": config.integer("intermediate_size"),
        "attention.head_count": config.integer("num_attention_heads"),
        "attention.layer_norm_epsilon": config.number("layer_norm_eps", 1e-12),
        "vocab_size": config.integer("vocab_size"),
    } | sentence_metadata(config)


def sentence_metadata(config: CheckpointConfig) -> dict[str, object]:
    """Tokens see each other both ways, and their states become one vector."""
    return {"attention.causal": False, "pooling_type": POOLINGS.index(_pooling(config.path.parent))}


def _pooling(folder: Path) -> str:
    """As `modules.json` says; without one the mean, as sentence-transformers takes it."""
    listing = folder / "modules.json"
    if not listing.exists():
        return "mean"
    modules = _read(listing)
    paths = [part.get("path", "") for part in modules if str(part.get("type", "")).endswith(".Pooling")]
    if not paths:
        return "mean"
    path = folder / str(paths[0]) / "config.json"
    (settings,) = _read(path)
    chosen = [mode for key, mode in _MODES.items() if settings.get(key) is True]
    chosen += [str(settings["pooling_mode"])] if "pooling_mode" in settings else []
    if len(chosen) != 1 or chosen[0] not in POOLINGS:
        raise FormatError(f"wants one way of pooling out of {', '.join(POOLINGS)}, not {chosen}", path=path)
    return chosen[0]


def _read(path: Path) -> list[dict[str, object]]:
    """The objects of a JSON file that is one or lists some."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FormatError(f"cannot be read as JSON: {error}", path=path) from None
    parts = found if isinstance(found, list) else [found]
    if not all(isinstance(part, dict) for part in parts):
        raise FormatError("wants objects", path=path)
    return parts
