"""`rope_freqs.weight`: the divisor of each pair's frequency, stored as a tensor because converters compute it."""

from __future__ import annotations

import numpy as np

from ..formats import GGUFFile
from .metadata import Metadata
from .rope import Factors

NAME = "rope_freqs.weight"
_MAX_PAIRS = 1 << 11


def read_rope_factors(gguf: GGUFFile, metadata: Metadata) -> Factors | None:
    """One positive factor a pair, None where the file has none; `metadata` gets the problems."""
    info = gguf.tensors.get(NAME)
    if info is None:
        return None
    n_rot = metadata.values.get(f"{metadata.arch}.rope.dimension_count", 2 * info.n_elements)
    if info.n_elements > _MAX_PAIRS or n_rot != 2 * info.n_elements:
        metadata.problem(NAME, f"has {info.n_elements} factors for {n_rot} channels that turn")
        return None
    factors = info.format.decode(gguf.tensor_data(NAME)).reshape(-1)
    if not np.all(np.isfinite(factors)) or factors.min() <= 0:
        metadata.problem(NAME, "holds factors that are not positive numbers")
        return None
    return tuple(factors.tolist())
