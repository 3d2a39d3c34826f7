"""A head that is the embedding: which of the two a file needs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import FormatError
from ...model.checkpoint import TensorRule
from ...model.checkpoint_config import CheckpointConfig
from .tensor_source import TensorSource

HEAD, EMBEDDING = "output.weight", "token_embd.weight"
_ROWS = 4096


def is_tied_twin(rule: TensorRule, rules: Sequence[TensorRule], source: TensorSource, config: CheckpointConfig) -> bool:
    """Whether a tensor is the head, stored a second time although the config says that it is the embedding.

    Raises `FormatError` where it is another matrix: one of the two is wrong, and nothing tells which.
    """
    if rule.target != HEAD or config.given.get("tie_word_embeddings") is not True:
        return False
    name = next((other.sources[0] for other in rules if other.target == EMBEDDING), None)
    if name is None or name not in source.tensors:
        return False
    head, embedding = source.tensors[rule.sources[0]], source.tensors[name]
    if (head.shape, head.dtype) != (embedding.shape, embedding.dtype) or not _same(source, head.name, name):
        raise FormatError(
            f"tie_word_embeddings says that {head.name!r} is {name!r}, but the two differ: set it to false if the "
            "model was trained with a head of its own",
            path=config.path,
        )
    return True


def _same(source: TensorSource, a: str, b: str) -> bool:
    total = source.tensors[a].shape[0]
    parts = ((start, min(start + _ROWS, total)) for start in range(0, total, _ROWS))
    return all(np.array_equal(source.read(a, *part), source.read(b, *part)) for part in parts)
